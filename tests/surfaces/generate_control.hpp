// The control part of an operations file (see generate_usage.hpp): snapshots that are applied, refused and rolled back, and what keys are then.
//   control ENVELOPE STEADY WALL PAYLOAD      control CODE GENERATION TOP KEYS REVOKED REFUSED ROLLBACKS AGE
//     One applier over a key set, the Limits of `scope` and a slot of prices. ENVELOPE: "-" = unsigned. PAYLOAD: the rest of the line. CODE: of
//     the apply; the numbers: of the status then. Its signer's seed is 32 times "s", its id "s".
//   confirm STEADY WALL        confirm AGE
//   revoke ID VERSION          revoke CODE
//   holder KEY STEADY WALL     holder VERDICT KEY_ID TEAM VERSION GENERATION
//   priced MODEL               priced PICOS        of what the last `meter` read, by the table in the slot; -1: none
#pragma once

#include <cinttypes>
#include <cstdio>
#include <random>
#include <string>

#include "warmroute/control/signature.hpp"
#include "warmroute/usage/keys.hpp"

namespace surfaces {

class ControlGenerator {
 public:
  explicit ControlGenerator(std::mt19937_64& random) : random_(random), signer_(signer('s')), stranger_(signer('x')) {}

  void step(std::int64_t now, std::int64_t wall) {
    const std::size_t kind = below(10);
    if (kind < 3) snapshot(now, wall);
    else if (kind == 3) std::printf("confirm %" PRId64 " %" PRId64 "\n", now, wall);
    else if (kind == 4 && below(8) == 0)
      std::printf("revoke k%zu %zu\n", below(kKeys), static_cast<std::size_t>(here_));
    else if (kind < 7) std::printf("priced %s\n", below(2) == 0 ? "m-test" : "fast");
    else std::printf("holder %s %" PRId64 " %" PRId64 "\n", key(below(kKeys)).c_str(), now, wall);
  }

 private:
  static constexpr std::size_t kKeys = 6;
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  static warmroute::SigningKey signer(char of) {
    std::array<std::uint8_t, 32> seed{};
    seed.fill(static_cast<std::uint8_t>(of));
    return *warmroute::SigningKey::from_seed(seed, "s");
  }
  static std::string key(std::size_t i) { return "sk-k" + std::to_string(i) + "-secret"; }
  static std::string hex(const std::string& key_text) {
    std::string out;
    const auto digest = warmroute::key_digest(key_text, warmroute::KeyDigestKind::sha256_secret);
    for (const std::uint8_t byte : digest->bytes) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", byte);
      out += two;
    }
    return out;
  }
  std::string keys() {
    std::string out;
    for (std::size_t i = 0; i < kKeys; ++i) {
      if (below(4) == 0) continue;
      out += (out.empty() ? "" : ",") + ("{\"public_id\":\"k" + std::to_string(i)) +
             "\",\"team_id\":\"t\",\"version\":" + std::to_string(here_ + below(8));
      if (below(12) == 0) out += ",\"revoked\":true}";
      else out += ",\"digests\":[{\"kind\":\"sha256_secret\",\"hex\":\"" + hex(key(i)) + "\"}]}";
    }
    return out;
  }
  void snapshot(std::int64_t now, std::int64_t wall) {
    static const char* const kExpired[]{"serve", "deny_new_keys", "deny_all"};
    static const char* const kFaults[]{",\"revokd\":true", ",\"aliases\":{\"a\":\"a\"}", "]"};
    const bool back = below(8) == 0 && here_ > 3;
    const std::uint64_t generation = back ? here_ - 1 - below(3) : top_ + below(4);
    std::string payload =
        "{\"format\":1,\"generation\":" + std::to_string(generation) +
        ",\"issued_at\":\"2027-01-15T08:00:00Z\",\"max_age_s\":1,\"on_expired\":\"" + kExpired[below(3)] +
        "\",\"keys\":[" + keys() +
        "],\"limits\":[{\"dimension\":\"team\",\"value\":\"c\",\"limits\":[{\"name\":\"rpm\",\"kind\":\"rate\","
        "\"unit\":\"requests\",\"amount\":" +
        std::to_string(1 + below(60)) +
        ",\"period_s\":60}]}],\"prices\":{\"overrides\":{\"m-test\":{\"input_cost_per_token\":" +
        std::to_string(1 + below(9)) + "e-6,\"output_cost_per_token\":2e-6}}},\"aliases\":{\"fast\":\"m-test\"}";
    if (back) payload += ",\"forced_rollback\":{\"from\":" + std::to_string(here_) + ",\"reason\":\"so\"}";
    const std::size_t fault = below(20);
    if (fault < 3) payload += kFaults[fault];
    payload += '}';
    std::string file = *warmroute::sign_snapshot(payload, fault == 3 ? stranger_ : signer_);
    std::string envelope = file.substr(0, file.find('\n'));
    if (fault == 4) envelope = "-";
    if (fault == 5) payload += ' ';  // signed otherwise
    std::printf("control %s %" PRId64 " %" PRId64 " %s\n", envelope.c_str(), now, wall, payload.c_str());
    if (fault < 6 || (!back && generation <= top_)) return;
    here_ = generation;
    top_ = std::max(top_, here_);
  }

  std::mt19937_64& random_;
  const warmroute::SigningKey signer_, stranger_;
  std::uint64_t here_ = 0, top_ = 1;
};

}  // namespace surfaces
