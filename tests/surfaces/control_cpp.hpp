// The operations of generate_control.hpp through the C++ interface.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "line.h"
#include "warmroute/control/applier.hpp"
#include "warmroute/usage/meter.hpp"

namespace surfaces {

using namespace warmroute;  // NOLINT(google-build-using-namespace)

class ControlRunner {
 public:
  explicit ControlRunner(Limits& limits) {
    std::array<std::uint8_t, 32> seed{};
    seed.fill('s');
    ControlOptions options;
    options.trust.keys.push_back(SigningKey::from_seed(seed, "s")->public_key());
    applier_.emplace(std::move(options), ControlTargets{&keys_, &limits, &prices_, nullptr});
  }
  /// returns: whether the operation is one of these. `report`: of the last meter.
  bool run(std::string_view op, char* line, const UsageReport& report) {
    if (op == "control") control(line);
    else if (op == "confirm") {
      const UsageTime now = time(&line);
      applier_->confirm(now);
      std::printf("confirm %" PRId64 "\n", applier_->status(now.steady).age.value);
    } else if (op == "revoke") {
      const char* const id = line_field(&line);
      const auto version = static_cast<std::uint64_t>(line_int(&line));
      std::printf("revoke %d\n", static_cast<int>(applier_->revoke(id, version).code()));
    } else if (op == "holder") holder(line);
    else if (op == "priced") {
      const auto table = prices_.get();
      const auto picos = table == nullptr ? std::nullopt : table->cost(report, line).picos;
      std::printf("priced %" PRId64 "\n", picos.value_or(-1));
    } else return false;
    return true;
  }

 private:
  static UsageTime time(char** line) {
    const Nanos steady{line_int(line)};
    return {steady, WallNanos{line_int(line)}};
  }
  static const char* word(const std::string& text) { return text.empty() ? "-" : text.c_str(); }
  void control(char* line) {
    std::string bytes = line_field(&line);
    if (!bytes.empty()) bytes += '\n';
    const UsageTime now = time(&line);
    const Code code = applier_->apply(bytes + line, now).code();
    const ControlStatus s = applier_->status(now.steady);
    std::printf("control %d %" PRIu64 " %" PRIu64 " %zu %zu %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
                static_cast<int>(code), s.generation, s.top_generation, s.keys, s.revoked, s.refused, s.rollbacks,
                s.generation == 0 ? -1 : s.age.value);
  }
  void holder(char* line) {
    const std::string key = line_field(&line);
    KeyGrant grant;
    const KeyVerdict verdict = keys_.check(key, time(&line), grant);
    if (verdict != KeyVerdict::accepted) {
      std::printf("holder %d\n", static_cast<int>(verdict));
      return;
    }
    std::printf("holder 0 %s %s %" PRIu64 " %" PRIu64 "\n", word(grant.key_id), word(grant.team_id), grant.version,
                grant.generation);
  }

  KeySet keys_;
  PriceSlot prices_;
  std::optional<SnapshotApplier> applier_;
};

}  // namespace surfaces
