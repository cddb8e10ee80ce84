// The operations of generate_usage.hpp through the C++ interface.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control_cpp.hpp"
#include "line.h"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/price.hpp"

namespace surfaces {

using namespace warmroute;  // NOLINT(google-build-using-namespace)

class UsageRunner {
 public:
  /// returns: whether the operation is one of these.
  bool run(std::string_view op, char* line) {
    if (op == "meter") meter(line);
    else if (op == "prices") prices(line);
    else if (op == "override") std::printf("override %d\n", number(prices_.override_with(line).code()));
    else if (op == "alias") alias(line);
    else if (op == "cost") cost(line);
    else if (op == "scope") scope(line);
    else if (op == "limits") {
      const ScopeId which = scopes_.at(static_cast<std::size_t>(line_int(&line)));
      const std::vector<LimitSpec> all = specs(line);
      std::printf("limits %d\n", number(limits_.set_limits(which, all).code()));
    } else if (op == "default") {
      const char* dimension = line_field(&line);
      const std::vector<LimitSpec> all = specs(line);
      std::printf("default %d\n", number(limits_.set_default_limits(dimension, all).code()));
    } else if (op == "reserve") reserve(line);
    else if (op == "progress" || op == "settle" || op == "release" || op == "extend") change(op, line);
    else if (op == "expire") std::printf("expire %zu\n", limits_.advance(time(&line)));
    else if (op == "used") used(line);
    else return control_.run(op, line, meter_.report());
    return true;
  }

 private:
  static int number(Code code) { return static_cast<int>(code); }
  static std::int64_t known(UsageCount count) { return count.value_or(-1); }
  static std::string word(std::string_view text) { return text.empty() ? "-" : std::string(text); }
  static std::string joined(std::initializer_list<std::int64_t> numbers, char by) {
    std::string text;
    for (const std::int64_t n : numbers) text += (text.empty() ? "" : std::string(1, by)) + std::to_string(n);
    return text;
  }

  void meter(char* line) {
    MeterOptions options;
    options.api = static_cast<AnswerApi>(line_int(&line));
    const char* profile = line_field(&line);
    options.profile.input_includes_cache = static_cast<Belief>(profile[0] - '0');
    options.profile.output_includes_reasoning = static_cast<Belief>(profile[1] - '0');
    options.profile.ignore_total = profile[2] == '1';
    options.profile.trust_requested_tier = profile[3] == '1';
    options.requested_tier = "flex";
    const auto cut = static_cast<std::size_t>(line_int(&line));
    std::size_t size = 0;
    const char* bytes = line_bytes(&line, &size);
    const std::string_view body(bytes, size);
    meter_.reset(options);
    for (std::size_t i = 0; i < size; i += cut == 0 ? size : cut) meter_.feed(body.substr(i, cut == 0 ? size : cut));
    meter_.finish();
    print(meter_.report());
  }
  void print(const UsageReport& r) {
    const Usage& u = r.usage;
    const auto first = meter_.first_token_end();
    std::string counts;
    for (const UsageCount& c : {u.input_tokens,
                                u.cached_input_tokens,
                                u.cache_write_input_tokens,
                                u.output_tokens,
                                u.reasoning_output_tokens,
                                u.cache_write_5m_tokens,
                                u.cache_write_30m_tokens,
                                u.cache_write_1h_tokens,
                                u.cache_write_12h_tokens,
                                u.text_input_tokens,
                                u.audio_input_tokens,
                                u.image_input_tokens,
                                u.video_input_tokens,
                                u.cached_text_input_tokens,
                                u.cached_audio_input_tokens,
                                u.cached_image_input_tokens,
                                u.cached_video_input_tokens,
                                u.text_output_tokens,
                                u.audio_output_tokens,
                                u.image_output_tokens,
                                u.tool_use_input_tokens,
                                u.accepted_prediction_tokens,
                                u.rejected_prediction_tokens,
                                u.processed_input_tokens,
                                u.processed_output_tokens,
                                u.unattributed_tokens,
                                u.context_input_tokens,
                                u.web_search_requests,
                                u.web_fetch_requests,
                                u.reported_cost_picos}) {
      counts += (counts.empty() ? "" : ",") + std::to_string(known(c));
    }
    std::string others;
    for (const OtherModelUsage& o : r.other_models) {
      others += (others.empty() ? "" : ",") + std::string(o.model) + ":" +
                joined({known(o.input_tokens), known(o.cached_input_tokens), known(o.cache_write_input_tokens),
                        known(o.output_tokens)},
                       ':');
    }
    std::printf("meter %d %d %d %u %" PRId64 " %" PRId64 " %d %s %s %s %s %s %s\n", r.complete, r.error,
                static_cast<int>(r.source), r.anomalies.bits, r.output_events,
                first ? static_cast<std::int64_t>(*first) : -1, meter_.is_stream(), counts.c_str(),
                word(r.finish_reason).c_str(), word(r.service_tier).c_str(), word(r.model).c_str(),
                word(r.response_id).c_str(), word(others).c_str());
  }

  void prices(const char* json) {
    auto read = PriceTable::from_json(json);
    if (!read) {
      std::printf("prices error %d\n", number(read.code()));
      return;
    }
    prices_ = std::move(*read);
    std::printf("prices %zu %zu %s\n", prices_.size(), prices_.skipped_rates(), prices_.version().c_str());
  }
  void alias(char* line) {
    const char* from = line_field(&line);
    std::printf("alias %d\n", number(prices_.set_alias(from, line_field(&line)).code()));
  }
  void cost(char* line) {
    const char* model = line_field(&line);
    PriceOptions options;
    options.provider = line_field(&line);
    const std::int64_t tier = line_int(&line);
    if (tier >= 0) options.tier = static_cast<PriceTier>(tier);
    const char* flags = line_field(&line);
    options.prefer_reported_cost = flags[0] == '1';
    options.off_peak = flags[1] == '1';
    const Cost c = prices_.cost(meter_.report(), model, options);
    std::string lines;
    for (const CostLine& l : c.bill()) {
      lines += (lines.empty() ? "" : ",") +
               joined({static_cast<std::int64_t>(l.meter), l.quantity, l.rate_femtos, l.cost_picos}, ':');
    }
    std::printf("cost %" PRId64 " %d %s %" PRId64 " %d %d %s\n", known(c.picos), static_cast<int>(c.source),
                word(c.price_key).c_str(), c.threshold_tokens, c.tier_fell_back, c.partial, word(lines).c_str());
  }

  void scope(char* line) {
    const char* dimension = line_field(&line);
    const auto made = limits_.scope(dimension, line_field(&line));
    if (made && std::find(scopes_.begin(), scopes_.end(), *made) == scopes_.end()) scopes_.push_back(*made);
    std::printf("scope %d\n", number(made.code()));
  }
  std::int64_t place(ScopeId id) const {
    const auto found = std::find(scopes_.begin(), scopes_.end(), id);
    return found == scopes_.end() ? -1 : found - scopes_.begin();
  }
  static std::vector<LimitSpec> specs(char* text) {
    std::vector<LimitSpec> all;
    for (char* one = std::strtok(text, ","); one != nullptr; one = std::strtok(nullptr, ",")) {
      for (char* c = one; *c != '\0'; ++c) *c = *c == ':' ? ' ' : *c;
      LimitSpec s;
      s.name = line_field(&one);
      s.kind = static_cast<LimitKind>(line_int(&one));
      s.unit = static_cast<LimitUnit>(line_int(&one));
      s.amount = line_int(&one);
      s.period = Nanos{line_int(&one)};
      s.burst = line_int(&one);
      s.window.unit = static_cast<CalendarUnit>(line_int(&one));
      s.window.count = static_cast<std::int32_t>(line_int(&one));
      s.cached_weight_permille = static_cast<std::int32_t>(line_int(&one));
      s.shadow = line_int(&one) != 0;
      s.hard_stop = line_int(&one) != 0;
      all.push_back(std::move(s));
    }
    return all;
  }
  static LimitUse use(char** line) {
    std::int64_t counts[4];
    line_counts(line, counts, 4);
    const auto count = [&](int i) { return counts[i] < 0 ? UsageCount{} : UsageCount{counts[i]}; };
    return {count(0), count(1), count(2), count(3)};
  }
  static UsageTime time(char** line) {
    const Nanos steady{line_int(line)};
    return {steady, WallNanos{line_int(line)}};
  }
  void reserve(char* line) {
    std::int64_t numbers[16];
    std::vector<ScopeId> asked(line_counts(&line, numbers, 16));
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = scopes_.at(static_cast<std::size_t>(numbers[i]));
    const LimitUse estimate = use(&line);
    const LimitDecision d = limits_.reserve(asked, estimate, time(&line));
    tickets_.push_back(d.ticket);
    std::string left, headers;
    for (const LimitLeft& l : d.left) {
      left += (left.empty() ? "" : ",") + joined({l.amount, l.remaining, l.reset.value}, ':');
    }
    for (const auto& [name, value] : limit_headers(d)) {
      headers += headers.empty() ? "" : ",";
      headers += name + ":" + value;
    }
    std::printf("reserve %d %" PRId64 " %u %" PRId64 " %" PRId64 " %d %" PRId64 " %u %s %s\n",
                static_cast<int>(d.outcome), place(d.scope), d.limit, d.retry_after.value, d.reset.value,
                d.shadow_denied, place(d.shadow_scope), d.shadow_limit, left.c_str(), word(headers).c_str());
  }
  void change(std::string_view op, char* line) {
    const LimitTicket ticket = tickets_.at(static_cast<std::size_t>(line_int(&line)));
    int done = 0;
    if (op == "progress" || op == "settle") {
      const LimitUse so_far = use(&line);
      const UsageTime now = time(&line);
      done = op == "settle" ? number(limits_.settle(ticket, so_far, now).code())
                            : static_cast<int>(limits_.progress(ticket, so_far, now));
    } else if (op == "release") done = number(limits_.release(ticket, time(&line)).code());
    else done = number(limits_.extend(ticket, Nanos{line_int(&line)}).code());
    std::printf("%.*s %d\n", static_cast<int>(op.size()), op.data(), done);
  }
  void used(char* line) {
    const ScopeId which = scopes_.at(static_cast<std::size_t>(line_int(&line)));
    const char* name = line_field(&line);
    const auto amount = limits_.used(which, name, time(&line));
    if (amount) std::printf("used %" PRId64 "\n", *amount);
    else std::printf("used error %d\n", number(amount.code()));
  }

  Meter meter_;
  PriceTable prices_;
  Limits limits_ = Limits(LimitOptions{.lease = seconds(5)});
  std::vector<ScopeId> scopes_;
  std::vector<LimitTicket> tickets_;
  ControlRunner control_ = ControlRunner(limits_);
};

}  // namespace surfaces
