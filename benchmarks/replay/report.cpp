#include "replay/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <span>

#include "simdjson.h"
#include "warmroute/trace/sample.hpp"

namespace warmroute::replay {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

double to_ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// Sorts its argument.
LatencySummary latency_summary(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  LatencySummary s;
  if (values.empty()) return s;
  const std::span<const double> sorted{values};
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  s.p50 = trace::percentile(sorted, 500);
  s.p90 = trace::percentile(sorted, 900);
  s.p99 = trace::percentile(sorted, 990);
  s.max = values.back();
  return s;
}

void add_balance(Report& report, std::int64_t replicas) {
  if (report.replicas.empty()) return;
  const auto count =
      static_cast<double>(std::max<std::int64_t>(replicas, static_cast<std::int64_t>(report.replicas.size())));
  ReplicaShare sum, max;
  for (const auto& [name, share] : report.replicas) {
    sum.requests += share.requests;
    sum.tokens += share.tokens;
    max.requests = std::max(max.requests, share.requests);
    max.tokens = std::max(max.tokens, share.tokens);
  }
  report.request_balance =
      static_cast<double>(max.requests) * count / static_cast<double>(std::max<std::int64_t>(1, sum.requests));
  report.token_balance =
      static_cast<double>(max.tokens) * count / static_cast<double>(std::max<std::int64_t>(1, sum.tokens));
}

void add_foresight(Foresight& foresight, const Exchange& x, std::int64_t block_tokens) {
  if (x.expected_cached_tokens < 0 || x.cached_tokens < 0) return;
  const std::int64_t off = x.expected_cached_tokens - x.cached_tokens;
  ++foresight.requests;
  if (off == 0) ++foresight.exact;
  foresight.off_tokens += off < 0 ? -off : off;
  foresight.cached_tokens += x.cached_tokens;
  if (off <= block_tokens && off >= -block_tokens) {
    ++foresight.near;
  } else {
    ++(off > 0 ? foresight.too_many : foresight.too_few);
  }
}

std::string latency_json(const LatencySummary& s) {
  return "{\"mean\":" + format("%.3f", s.mean) + ",\"p50\":" + format("%.3f", s.p50) +
         ",\"p90\":" + format("%.3f", s.p90) + ",\"p99\":" + format("%.3f", s.p99) +
         ",\"max\":" + format("%.3f", s.max) + "}";
}

using Element = simdjson::dom::element;

double number_at(const Element& object, const char* name) {
  double value = 0;
  return object[name].get(value) == simdjson::SUCCESS ? value : 0.0;
}
std::int64_t count_at(const Element& object, const char* name) {
  return static_cast<std::int64_t>(number_at(object, name));
}
std::string text_at(const Element& object, const char* name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}
LatencySummary latency_at(const Element& object, const char* name) {
  Element inner;
  if (object[name].get(inner) != simdjson::SUCCESS) return {};
  return {number_at(inner, "mean"), number_at(inner, "p50"), number_at(inner, "p90"), number_at(inner, "p99"),
          number_at(inner, "max")};
}

}  // namespace

std::int64_t Report::error_count() const {
  std::int64_t sum = 0;
  for (const auto& [name, count] : errors) sum += count;
  return sum;
}

Report summarise(const std::vector<Exchange>& exchanges, const RunFacts& facts) {
  Report report;
  report.label = facts.label;
  report.scenario = facts.scenario;
  report.time_scale = facts.time_scale;
  report.load = facts.load;
  report.wall_seconds = facts.wall_seconds;
  report.bound_ratio = facts.bound_ratio;
  report.requests = static_cast<std::int64_t>(exchanges.size());
  std::vector<double> ttft_wall, ttft, e2e, itl, late;
  for (const Exchange& x : exchanges) {
    report.retries += x.attempts - 1;
    late.push_back(to_ms(x.sent - x.due));
    if (!x.ok()) {
      ++report.errors[x.error];
      continue;
    }
    ++report.completed;
    ttft_wall.push_back(to_ms(x.first_token - x.due));
    ttft.push_back(ttft_wall.back() * facts.time_scale);
    e2e.push_back(to_ms(x.end - x.due) * facts.time_scale);
    for (const std::int64_t gap : x.gaps_us) itl.push_back(static_cast<double>(gap) / 1000.0 * facts.time_scale);
    const std::int64_t input = std::max<std::int64_t>(0, x.prompt_tokens),
                       cached = std::max<std::int64_t>(0, x.cached_tokens);
    report.input_tokens += input;
    report.cached_tokens += cached;
    report.output_tokens += x.tokens;
    add_foresight(report.foresight, x, facts.block_tokens);
    if (x.replica.empty()) continue;
    ReplicaShare& share = report.replicas[x.replica];
    ++share.requests;
    share.tokens += input + x.tokens;
    share.uncached += input - cached;
  }
  report.ttft = latency_summary(ttft);
  report.ttft_wall = latency_summary(ttft_wall);
  report.e2e = latency_summary(e2e);
  report.itl = latency_summary(itl);
  report.late_p99_wall = latency_summary(late).p99;
  for (std::size_t p = 0; p <= 100; ++p)
    report.ttft_percentiles.push_back(trace::percentile(std::span<const double>{ttft}, p * 10));
  if (report.input_tokens > 0)
    report.hit_ratio = static_cast<double>(report.cached_tokens) / static_cast<double>(report.input_tokens);
  add_balance(report, facts.replicas);
  return report;
}

std::string table(const std::vector<Report>& reports) {
  constexpr std::size_t kLabelWidth = 32, kColumnWidth = 18;
  std::string out;
  const auto pad = [](std::string text, std::size_t width) {
    text.resize(std::max(text.size() + 1, width), ' ');
    return text;
  };
  out += pad("", kLabelWidth);
  for (const Report& r : reports) out += pad(r.label, kColumnWidth);
  out += '\n';
  const auto row = [&](const char* name, const auto& cell) {
    out += pad(name, kLabelWidth);
    for (const Report& r : reports) out += pad(cell(r), kColumnWidth);
    out += '\n';
  };
  // Latencies show how they compare with the first run's.
  const auto latency = [&](const char* name, LatencySummary Report::*which, double LatencySummary::*what) {
    row(name, [&](const Report& r) {
      std::string text = format("%.0f", r.*which.*what);
      const double first = reports.front().*which.*what;
      if (&r != &reports.front() && first > 0) text += format(" (x%.2f)", r.*which.*what / first);
      return text;
    });
  };
  latency("TTFT mean, ms", &Report::ttft, &LatencySummary::mean);
  latency("TTFT p50, ms", &Report::ttft, &LatencySummary::p50);
  latency("TTFT p90, ms", &Report::ttft, &LatencySummary::p90);
  latency("TTFT p99, ms", &Report::ttft, &LatencySummary::p99);
  latency("end to end mean, ms", &Report::e2e, &LatencySummary::mean);
  row("inter-token mean / p99, ms",
      [](const Report& r) { return format("%.1f", r.itl.mean) + format(" / %.0f", r.itl.p99); });
  row("cached input tokens", [](const Report& r) { return format("%.1f %%", r.hit_ratio * 100); });
  row("  of the infinite cache's",
      [](const Report& r) { return r.bound_ratio > 0 ? format("%.0f %%", r.share_of_bound() * 100) : "-"; });
  row("foreseen exactly / in a block", [](const Report& r) {
    const Foresight& f = r.foresight;
    if (f.requests == 0) return std::string("-");
    return format("%.1f", Foresight::percent(f.exact, f.requests)) +
           format(" / %.1f %%", Foresight::percent(f.near, f.requests));
  });
  row("  else too many / too few", [](const Report& r) {
    const Foresight& f = r.foresight;
    return f.requests == 0 ? std::string("-") : std::to_string(f.too_many) + " / " + std::to_string(f.too_few);
  });
  row("  off by, of all cached tokens", [](const Report& r) {
    const Foresight& f = r.foresight;
    return f.cached_tokens == 0 ? std::string("-")
                                : format("%.2f %%", Foresight::percent(f.off_tokens, f.cached_tokens));
  });
  row("requests, max / mean",
      [](const Report& r) { return r.request_balance > 0 ? format("%.2f", r.request_balance) : "-"; });
  row("tokens, max / mean",
      [](const Report& r) { return r.token_balance > 0 ? format("%.2f", r.token_balance) : "-"; });
  row("completed", [](const Report& r) { return std::to_string(r.completed) + " of " + std::to_string(r.requests); });
  row("errors / client retries",
      [](const Report& r) { return std::to_string(r.error_count()) + " / " + std::to_string(r.retries); });
  row("TTFT mean in real time, ms", [](const Report& r) { return format("%.1f", r.ttft_wall.mean); });
  row("sent late p99, real ms", [](const Report& r) { return format("%.1f", r.late_p99_wall); });
  row("real seconds", [](const Report& r) { return format("%.0f", r.wall_seconds); });
  for (const Report& r : reports) {
    for (const auto& [name, count] : r.errors)
      out += "  " + r.label + ": " + std::to_string(count) + " x " + name + "\n";
  }
  return out;
}

std::string to_json(const Report& r) {
  std::string out =
      "{\"label\":" + examples::json_quoted(r.label) + ",\"scenario\":" + examples::json_quoted(r.scenario) +
      ",\"time_scale\":" + format("%g", r.time_scale) + ",\"load\":" + format("%g", r.load) +
      ",\"wall_seconds\":" + format("%.3f", r.wall_seconds) + ",\"requests\":" + std::to_string(r.requests) +
      ",\"completed\":" + std::to_string(r.completed) + ",\"retries\":" + std::to_string(r.retries) +
      ",\n \"ttft_ms\":" + latency_json(r.ttft) + ",\"ttft_wall_ms\":" + latency_json(r.ttft_wall) +
      ",\n \"e2e_ms\":" + latency_json(r.e2e) + ",\"itl_ms\":" + latency_json(r.itl) +
      ",\n \"input_tokens\":" + std::to_string(r.input_tokens) +
      ",\"cached_tokens\":" + std::to_string(r.cached_tokens) +
      ",\"output_tokens\":" + std::to_string(r.output_tokens) + ",\"hit_ratio\":" + format("%.6f", r.hit_ratio) +
      ",\"bound_ratio\":" + format("%.6f", r.bound_ratio) +
      ",\"share_of_bound\":" + format("%.6f", r.share_of_bound()) +
      ",\n \"foresight\":{\"requests\":" + std::to_string(r.foresight.requests) +
      ",\"exact\":" + std::to_string(r.foresight.exact) + ",\"near\":" + std::to_string(r.foresight.near) +
      ",\"too_many\":" + std::to_string(r.foresight.too_many) + ",\"too_few\":" + std::to_string(r.foresight.too_few) +
      ",\"off_tokens\":" + std::to_string(r.foresight.off_tokens) +
      ",\"cached_tokens\":" + std::to_string(r.foresight.cached_tokens) + "}" +
      ",\n \"late_p99_wall_ms\":" + format("%.3f", r.late_p99_wall) +
      ",\"request_balance\":" + format("%.4f", r.request_balance) +
      ",\"token_balance\":" + format("%.4f", r.token_balance) + ",\"errors\":{";
  const char* comma = "";
  for (const auto& [name, count] : r.errors) {
    out += comma + examples::json_quoted(name) + ":" + std::to_string(count);
    comma = ",";
  }
  out += "},\n \"replicas\":{";
  comma = "";
  for (const auto& [name, share] : r.replicas) {
    out += comma + examples::json_quoted(name) + ":{\"requests\":" + std::to_string(share.requests) +
           ",\"tokens\":" + std::to_string(share.tokens) +
           ",\"uncached_input_tokens\":" + std::to_string(share.uncached) + "}";
    comma = ",";
  }
  out += "},\n \"ttft_percentiles_ms\":[";
  comma = "";
  for (const double value : r.ttft_percentiles) {
    out += comma + format("%.3f", value);
    comma = ",";
  }
  return out + "]}\n";
}

Result<Report> from_json_file(const std::string& path) {
  simdjson::dom::parser parser;
  Element document;
  if (const auto error = parser.load(path).get(document); error != simdjson::SUCCESS || !document.is_object()) {
    return Error{error == simdjson::IO_ERROR ? Code::io : Code::invalid_json,
                 path + ": " + simdjson::error_message(error), kNoOffset};
  }
  Report r;
  r.label = text_at(document, "label");
  r.scenario = text_at(document, "scenario");
  r.time_scale = number_at(document, "time_scale");
  r.load = number_at(document, "load");
  r.wall_seconds = number_at(document, "wall_seconds");
  r.requests = count_at(document, "requests");
  r.completed = count_at(document, "completed");
  r.retries = count_at(document, "retries");
  r.ttft = latency_at(document, "ttft_ms");
  r.ttft_wall = latency_at(document, "ttft_wall_ms");
  r.e2e = latency_at(document, "e2e_ms");
  r.itl = latency_at(document, "itl_ms");
  r.input_tokens = count_at(document, "input_tokens");
  r.cached_tokens = count_at(document, "cached_tokens");
  r.output_tokens = count_at(document, "output_tokens");
  r.hit_ratio = number_at(document, "hit_ratio");
  r.bound_ratio = number_at(document, "bound_ratio");
  if (Element f; document["foresight"].get(f) == simdjson::SUCCESS) {
    r.foresight = {count_at(f, "requests"),     count_at(f, "exact"),   count_at(f, "near"),
                   count_at(f, "too_many"),     count_at(f, "too_few"), count_at(f, "off_tokens"),
                   count_at(f, "cached_tokens")};
  }
  r.late_p99_wall = number_at(document, "late_p99_wall_ms");
  r.request_balance = number_at(document, "request_balance");
  r.token_balance = number_at(document, "token_balance");
  simdjson::dom::object errors;
  if (document["errors"].get(errors) == simdjson::SUCCESS) {
    for (const auto member : errors) {
      std::int64_t count = 0;
      if (member.value.get(count) == simdjson::SUCCESS) r.errors[std::string(member.key)] = count;
    }
  }
  simdjson::dom::array percentiles;
  if (document["ttft_percentiles_ms"].get(percentiles) == simdjson::SUCCESS) {
    for (const Element value : percentiles) {
      double ms = 0;
      if (value.get(ms) == simdjson::SUCCESS) r.ttft_percentiles.push_back(ms);
    }
  }
  if (r.ttft_percentiles.size() != 101)
    return Error{Code::malformed, path + ": is no report of warmroute-replay", kNoOffset};
  return r;
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  return {};
}

}  // namespace warmroute::replay
