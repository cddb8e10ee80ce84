// The accounting part of an operations file (see generate.cpp): meters, prices and limits, as the three surfaces must see them.
// -1 = unknown, also where the surface says it otherwise (nullopt, None, WR_UNKNOWN). BODY: the answer's bytes in hex. What each prints:
//   meter API PROFILE CUT BODY     meter COMPLETE ERROR SOURCE ANOMALIES EVENTS FIRST STREAM COUNTS FINISH TIER MODEL ID OTHERS
//     A meter of its own, fed CUT bytes at a time (0: at once), finished. PROFILE: four digits, in the order of MeterProfile (belief, belief,
//     flag, flag). ANOMALIES: the bits as a number. FIRST: first_token_end. COUNTS: all of Usage, in its order, joined by commas. Strings that
//     are empty are "-". OTHERS: other models, "model:input:cached:write:output" joined by commas, or "-".
//   prices JSON                    prices SIZE SKIPPED VERSION | prices error CODE     (from then on this table, if it is good)
//   override JSON, alias ALIAS MODEL      the operation and CODE
//   cost MODEL PROVIDER TIER FLAGS        cost PICOS SOURCE KEY THRESHOLD FELLBACK PARTIAL LINES     of what the last `meter` read
//     TIER: -1 = the report's. FLAGS: two digits, prefer_reported_cost and off_peak. LINES: "meter:quantity:rate:cost" joined by commas, or "-".
// Of one Limits whose leases are of 5 s:
//   scope DIMENSION VALUE          scope CODE      scopes are meant by the order of these lines (one that is there already is its own number again)
//   limits N SPECS, default DIMENSION SPECS      the operation and CODE
//     SPECS: "name:kind:unit:amount:period_ns:burst:calendar_unit:calendar_count:cached_weight:shadow:hard_stop" joined by commas
//   reserve SCOPES USE STEADY WALL        reserve OUTCOME SCOPE LIMIT RETRY RESET SHADOW SHADOW_SCOPE SHADOW_LIMIT LEFT HEADERS
//     SCOPES: numbers joined by commas; -1 in the answer: none. USE: input,cached,output,cost_picos. LEFT: "amount:remaining:reset_ns" of each
//     unit, joined by commas. HEADERS: "name:value" joined by commas, or "-". Reservations are meant by the order of these lines, refused or not.
//   progress K USE STEADY WALL     progress GO_ON_STOP_OR_STALE
//   settle K USE STEADY WALL, release K STEADY WALL, extend K STEADY     the operation and CODE
//   expire STEADY WALL             expire COUNT    (advance, without a most)
//   used N NAME STEADY WALL        used AMOUNT | used error CODE
// and those of generate_control.hpp.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "generate_control.hpp"
#include "usage/usage_case_file.hpp"

namespace surfaces {

class UsageGenerator {
 public:
  explicit UsageGenerator(std::mt19937_64& random)
      : random_(random), cases_(warmroute::test::usage_cases()), control_(random) {
    std::ifstream file(WARMROUTE_TEST_DATA "/price_tables.jsonl");
    for (std::string line; std::getline(file, line);) tables_.push_back(line);
  }
  void begin() {
    prices();
    for (const char* scope : {"key a", "key b", "team t", "model m", "- x", "team c"}) {
      std::printf("scope %s\n", scope);
      scopes_ += scope[0] != '-';
    }
    std::puts("default key rpm:0:0:200:60000000000:0:0:1:1000:0:0,at-once:2:0:40:0:0:0:1:1000:0:0");
    std::puts("default model shadow:0:3:2000:60000000000:8000:0:1:250:1:0");
    std::puts("limits 2 day:1:4:3000000:0:0:2:1:1000:0:1,tokens:0:3:900000:60000000000:0:0:1:500:0:0");
    std::puts("limits 1 hour:1:1:30000:0:0:1:1:0:0:0,hour:1:1:1:0:0:1:1:0:0:0");  // a name twice: refused
  }
  void step(std::int64_t now) {
    if (below(4) == 0) return control_.step(now, wall(now));
    const std::size_t kind = below(100);
    if (kind < 12) meter();
    else if (kind < 14) prices();
    else if (kind < 16) change_prices();
    else if (kind < 30) cost();
    else if (kind < 32) more_limits();
    else if (kind < 60) reserve(now);
    else if (kind < 63) std::printf("expire %" PRId64 " %" PRId64 "\n", now, wall(now));
    else if (kind < 66) used(now);
    else if (reserved_ > 0) of_reservation(kind, now);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  static std::int64_t wall(std::int64_t now) { return 1'790'000'000'000'000'000 + now * 4'000; }  // days pass

  void meter() {
    const auto& c = cases_[below(cases_.size())];
    std::string body = c.body;
    if (below(4) == 0) body.resize(below(body.size()));
    std::string hex;
    for (const char byte : body) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      hex += two;
    }
    const std::size_t cut = below(3) == 0 ? 0 : 1 + below(200);
    std::printf("meter %zu %zu%zu%zu%zu %zu %s\n", below(3) == 0 ? below(9) : 0, c.input_includes_cache ? 1 : below(3),
                below(3), below(2), below(2), cut, hex.empty() ? "-" : hex.c_str());
  }
  std::string rates() {
    return "\"input_cost_per_token\":" + std::to_string(1 + below(30)) +
           "e-7,\"output_cost_per_token\":" + std::to_string(1 + below(90)) +
           "e-7,\"cache_read_input_token_cost\":" + std::to_string(below(20)) + ".5e-8";
  }
  void prices() {
    if (below(8) == 0) std::printf("prices %s\n", tables_[below(tables_.size())].c_str());
    else
      std::printf(
          "prices {\"m-test\":{%s},\"p/m2\":{%s,\"input_cost_per_token_priority\":9e-6},\"m3\":{%s,"
          "\"input_cost_per_token_above_200k_tokens\":7e-6}}\n",
          rates().c_str(), rates().c_str(), rates().c_str());
  }
  void change_prices() {
    switch (below(4)) {
      case 0: std::puts("override {\"m-test\":{\"output_cost_per_token\":\"much\"}}"); break;
      case 1: std::printf("override {\"m-test\":{%s}}\n", rates().c_str()); break;
      case 2: std::puts("alias other m-test"); break;
      default: std::puts("alias - m-test"); break;
    }
  }
  void cost() {
    static const char* const kModels[]{"-", "m-test", "m2", "p/m2", "m3", "other", "m-test-2026-01-01", "nobody"};
    std::printf("cost %s %s %d %zu%zu\n", kModels[below(8)], below(2) == 0 ? "-" : "p", static_cast<int>(below(5)) - 1,
                below(2), below(2));
  }
  void more_limits() {
    static const char* const kSpecs[]{
        "day:1:4:2000000:0:0:2:1:1000:0:1", "once:0:2:1500:60000000000:0:0:1:1000:0:0",
        "a:0:0:-5:60000000000:0:0:1:1000:0:0",  // less than nothing: refused
        "in:0:1:30000:1000000000:0:0:1:100:0:0,out:0:2:6000:1000000000:12000:0:1:1000:0:0",
        "month:1:3:5000000:0:0:4:1:1000:1:0,cost:0:4:9000000:60000000000:0:0:1:1000:0:0"};
    const std::size_t which = below(6);
    if (which == 0 && scopes_ < 12) std::printf("scope key k%zu\n", scopes_++);
    else if (which == 1) std::puts("scope team t");
    else if (which == 2) std::printf("default model %s\n", kSpecs[below(5)]);
    else std::printf("limits %zu %s\n", below(4), kSpecs[below(5)]);
  }
  std::string use(std::size_t known) {  // one of so many counts is unknown
    std::string text;
    for (const std::size_t most : {8'000u, 3'000u, 2'000u, 90'000'000u}) {
      text += (text.empty() ? "" : ",") + (below(known) == 0 ? "-1" : std::to_string(below(most)));
    }
    return text;
  }
  void reserve(std::int64_t now) {
    std::string scopes;
    for (std::size_t i = 0, n = 1 + below(3); i < n; ++i) {
      scopes += (scopes.empty() ? "" : ",") + std::to_string(below(scopes_));
    }
    std::printf("reserve %s %s %" PRId64 " %" PRId64 "\n", scopes.c_str(), use(20).c_str(), now, wall(now));
    ++reserved_;
  }
  void used(std::int64_t now) {
    static const char* const kNames[]{"rpm", "at-once", "day", "tokens", "shadow", "nothing"};
    std::printf("used %zu %s %" PRId64 " %" PRId64 "\n", below(scopes_), kNames[below(6)], now, wall(now));
  }
  void of_reservation(std::size_t kind, std::int64_t now) {
    const std::size_t k = reserved_ - 1 - below(std::min<std::size_t>(reserved_, 6));
    if (kind < 88) {
      std::printf("settle %zu %s %" PRId64 " %" PRId64 "\n", k, use(6).c_str(), now, wall(now));
    } else if (kind < 94) {
      std::printf("progress %zu %s %" PRId64 " %" PRId64 "\n", k, use(6).c_str(), now, wall(now));
    } else if (kind < 98) std::printf("release %zu %" PRId64 " %" PRId64 "\n", k, now, wall(now));
    else std::printf("extend %zu %" PRId64 "\n", k, now);
  }

  std::mt19937_64& random_;
  std::vector<warmroute::test::UsageCase> cases_;
  std::vector<std::string> tables_;
  ControlGenerator control_;
  std::size_t scopes_ = 0, reserved_ = 0;
};

}  // namespace surfaces
