// The answers of tests/data/usage_cases.jsonl and what each of them must be read as.
#pragma once

#include <simdjson.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/usage/meter.hpp"

namespace warmroute::test {

struct UsageCase {
  std::string id;
  std::string api;
  std::string framing;
  bool stream = false;
  bool input_includes_cache = false;  // hint: of the deployment's profile
  std::string body;
  std::map<std::string, std::string> expect;  // member, and its value as text; members that are null are "null"
};

inline std::string from_base64(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  unsigned group = 0;
  for (const char c : text) {
    static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) continue;
    group = group << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(group >> bits & 0xFF);
  }
  return out;
}

inline std::string text_of(simdjson::dom::element element) {
  if (element.is_string()) return std::string(std::string_view(element));
  return simdjson::to_string(element);
}

inline std::vector<UsageCase> usage_cases() {
  std::vector<UsageCase> cases;
  simdjson::dom::parser parser;
  for (const auto line : parser.load_many(WARMROUTE_TEST_DATA "/usage_cases.jsonl")) {
    UsageCase c;
    c.id = text_of(line["id"]);
    c.api = text_of(line["api"]);
    c.framing = text_of(line["framing"]);
    c.stream = bool(line["stream"]);
    c.body = text_of(line["body"]);
    if (!line["body_encoding"].error()) c.body = from_base64(c.body);
    c.input_includes_cache = !line["hints"]["input_includes_cache"].error();
    for (const auto member : simdjson::dom::object(line["expect"]))
      c.expect[std::string(member.key)] = text_of(member.value);
    cases.push_back(std::move(c));
  }
  return cases;
}

inline MeterOptions options_of(const UsageCase& c) {
  MeterOptions options;
  if (c.input_includes_cache) options.profile.input_includes_cache = Belief::yes;
  return options;
}

inline std::string text_of(UsageCount count) { return count ? std::to_string(*count) : "null"; }

inline std::string text_of(UsageAnomalies anomalies) {
  std::string out;
  for (std::size_t bit = 0; bit < kUsageAnomalyCount; ++bit) {
    if ((anomalies.bits >> bit & 1) == 0) continue;
    out += (out.empty() ? "[\"" : ",\"") + std::string(usage_anomaly_name(bit)) + "\"";
  }
  return out.empty() ? out : out + "]";
}

/// Everything a report says, as the case file spells it; what is unknown and optional there is left out.
inline std::map<std::string, std::string> as_expected(const UsageReport& report) {
  const Usage& usage = report.usage;
  std::map<std::string, std::string> all{{"input_tokens", text_of(usage.input_tokens)},
                                         {"cached_input_tokens", text_of(usage.cached_input_tokens)},
                                         {"cache_write_input_tokens", text_of(usage.cache_write_input_tokens)},
                                         {"output_tokens", text_of(usage.output_tokens)},
                                         {"reasoning_output_tokens", text_of(usage.reasoning_output_tokens)},
                                         {"total_tokens", text_of(usage.total_tokens())},
                                         {"complete", report.complete ? "true" : "false"}};
  const auto optional = [&](const char* name, UsageCount count) {
    if (count) all[name] = text_of(count);
  };
  optional("audio_input_tokens", usage.audio_input_tokens);
  optional("image_input_tokens", usage.image_input_tokens);
  optional("accepted_prediction_tokens", usage.accepted_prediction_tokens);
  optional("rejected_prediction_tokens", usage.rejected_prediction_tokens);
  optional("tool_use_input_tokens", usage.tool_use_input_tokens);
  optional("processed_input_tokens", usage.processed_input_tokens);
  optional("processed_output_tokens", usage.processed_output_tokens);
  optional("unattributed_tokens", usage.unattributed_tokens);
  optional("web_search_requests", usage.web_search_requests);
  optional("web_fetch_requests", usage.web_fetch_requests);
  std::string lifetimes;
  const auto lifetime = [&](const char* name, UsageCount count) {
    if (count) lifetimes += (lifetimes.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + text_of(count);
  };
  lifetime("5m", usage.cache_write_5m_tokens);
  lifetime("30m", usage.cache_write_30m_tokens);
  lifetime("1h", usage.cache_write_1h_tokens);
  lifetime("12h", usage.cache_write_12h_tokens);
  if (!lifetimes.empty()) all["cache_write_ttl"] = lifetimes + "}";
  if (!report.anomalies.empty()) all["anomalies"] = text_of(report.anomalies);
  if (!report.service_tier.empty()) all["service_tier"] = report.service_tier;
  if (report.error) all["error"] = "true";
  if (report.source == UsageSource::timings) all["source"] = "timings";
  if (usage.reported_cost_picos) {
    std::string digits = std::to_string(*usage.reported_cost_picos);
    digits.insert(0, digits.size() < 13 ? 13 - digits.size() : 0, '0');
    digits.insert(digits.size() - 12, ".");
    all["reported_cost_usd"] = digits.substr(0, digits.find_last_not_of('0') + 1);
  }
  std::string lines;
  for (const OtherModelUsage& line : report.other_models) {
    lines += (lines.empty() ? "[" : ",") + std::string("{\"model\":\"") + std::string(line.model) +
             "\",\"input_tokens\":" + text_of(line.input_tokens) +
             ",\"cached_input_tokens\":" + text_of(line.cached_input_tokens) +
             ",\"cache_write_input_tokens\":" + text_of(line.cache_write_input_tokens) +
             ",\"output_tokens\":" + text_of(line.output_tokens) + "}";
  }
  if (!lines.empty()) all["other_model_lines"] = lines + "]";
  return all;
}

}  // namespace warmroute::test
