/// What the router answers: which replica, what it already holds, why, and what to try next.
/// Outcomes that policy foresees ("no replica") are verdicts of a Decision, not errors.
/// A Decision is a plain value of fixed size: no allocation, may be copied and stored.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "warmroute/types.hpp"

namespace warmroute {

/// The outcome of a routing call. Numbers are fixed and only appended.
enum class Verdict : std::uint8_t {
  routed = 0,
  no_replica = 1,         ///< the pool exists, but no replica is up (and policy does not fail open)
  no_pool = 2,            ///< no pool serves this model and there is no catch-all pool
  no_adapter = 3,         ///< no eligible replica carries the adapter
  all_excluded = 4,       ///< `excluded` or `pinned` left nothing
  saturated = 5,          ///< every candidate is past the policy's limits or over its quota; see retry_after
  ticket_table_full = 6,  ///< more requests in flight than RouterOptions::max_tickets
  not_permitted = 7,      ///< reserved, not given yet: policy forbids every pool that could serve this request
  no_permitted_pool = 8,  ///< every pool that could serve it is forbidden to its class (route/models.hpp)
};
constexpr std::string_view verdict_name(Verdict v) noexcept {
  switch (v) {
    case Verdict::routed: return "routed";
    case Verdict::no_replica: return "no_replica";
    case Verdict::no_pool: return "no_pool";
    case Verdict::no_adapter: return "no_adapter";
    case Verdict::all_excluded: return "all_excluded";
    case Verdict::saturated: return "saturated";
    case Verdict::ticket_table_full: return "ticket_table_full";
    case Verdict::not_permitted: return "not_permitted";
    case Verdict::no_permitted_pool: return "no_permitted_pool";
  }
  return "unknown";
}

/// Why this replica and not the one that holds most of the prompt. Numbers are fixed and only appended.
enum class Reason : std::uint8_t {
  none = 0,
  best_match = 1,    ///< it holds as much of the prompt as any candidate and costs least
  no_match = 2,      ///< nobody holds the prompt: the cheapest candidate
  spill_wait = 3,    ///< the best holder's queue of prefill work costs more than computing again
  spill_decode = 4,  ///< the best holder's running requests cost more than computing again
  spill_hot = 5,     ///< several requests in flight miss this prefix: a further holder is made
  spill_bound = 6,   ///< the ring's home is over its load bound
  session = 7,       ///< the session's last replica
  home = 8,          ///< the ring's home of the key
  pinned = 9,
  only_candidate = 10,
  baseline = 11,         ///< a baseline policy that looks at neither cache nor ring
  fail_open = 12,        ///< no replica is up; policy says to try one all the same
  spill_saturated = 13,  ///< the cheapest is past the policy's limits: the cheapest that is not
};
inline constexpr std::size_t kReasonCount = 14;
constexpr std::string_view reason_name(Reason r) noexcept {
  constexpr std::array<std::string_view, kReasonCount> names{
      "none",    "best_match", "no_match", "spill_wait",     "spill_decode", "spill_hot", "spill_bound",
      "session", "home",       "pinned",   "only_candidate", "baseline",     "fail_open", "spill_saturated"};
  const auto i = static_cast<std::size_t>(r);
  return i < names.size() ? names[i] : "unknown";
}
constexpr bool is_spill(Reason r) noexcept {
  return r == Reason::spill_wait || r == Reason::spill_decode || r == Reason::spill_hot || r == Reason::spill_bound ||
         r == Reason::spill_saturated;
}

/// Whether one replica or two serve a request, and why (route/disaggregate.hpp). Numbers are fixed and only appended.
enum class Split : std::uint8_t {
  off = 0,              ///< policy, algorithm or the request (`pinned`) leave no choice
  pair = 1,             ///< prefill on `prefill_replica`, decode on `replica`
  unified_cheaper = 2,  ///< one replica is expected to cost everybody less
  short_prompt = 3,     ///< fewer uncached tokens than pair_min_tokens
  no_prefill = 4,       ///< no replica that prefills for others may take it: one replica serves it whole
  no_decode = 5,        ///< no other replica that can receive KV may take it: one replica serves it whole
};
inline constexpr std::size_t kSplitCount = 6;
constexpr std::string_view split_name(Split s) noexcept {
  constexpr std::array<std::string_view, kSplitCount> names{"off",          "pair",       "unified_cheaper",
                                                            "short_prompt", "no_prefill", "no_decode"};
  const auto i = static_cast<std::size_t>(s);
  return i < names.size() ? names[i] : "unknown";
}

inline constexpr std::size_t kMaxFallbacks = 4;

struct Decision {
  Verdict verdict = Verdict::no_replica;
  Reason reason = Reason::none;
  std::uint8_t fallback_count = 0;
  ReplicaId replica = kNoReplica;                       ///< where to send it (the decode replica of a pair)
  ReplicaId prefill_replica = kNoReplica;               ///< where prefill runs, if elsewhere: then this is a pair
  std::array<ReplicaId, kMaxFallbacks> fallback_ids{};  ///< what to try next, best first
  Ticket ticket = kNoTicket;                            ///< kNoTicket from `peek` and when nothing was routed

  Tokens input_tokens{0};  ///< as given or estimated
  /// Held where the prompt is computed: on the device, then what only host, then only disk adds, then only the store that all share.
  std::array<Tokens, kAllTierCount> cached_tokens{};
  Tokens best_cached_tokens{0};  ///< the most that any candidate holds
  Nanos expected_wait{0};        ///< prefill work booked there before this request; of a pair: where prefill runs
  Nanos expected_prefill{0};     ///< of the uncached tokens
  Nanos retry_after{0};          ///< for refusing verdicts: when to ask again; 0 = unknown

  std::uint32_t class_id = 0;
  std::int32_t priority = 0;

  Split split = Split::off;
  Tokens decode_cached_tokens{0};  ///< of a pair: leading tokens that `replica` holds already; the rest is transferred
  Nanos expected_transfer{0};      ///< of a pair

  [[nodiscard]] bool is_pair() const noexcept { return prefill_replica.valid(); }
  [[nodiscard]] bool routed() const noexcept { return verdict == Verdict::routed; }
  [[nodiscard]] std::span<const ReplicaId> fallbacks() const noexcept { return {fallback_ids.data(), fallback_count}; }
  [[nodiscard]] Tokens total_cached() const noexcept {
    return cached_tokens[0] + cached_tokens[1] + cached_tokens[2] + cached_tokens[3];
  }
  [[nodiscard]] Tokens uncached_tokens() const noexcept { return input_tokens - total_cached(); }
  [[nodiscard]] Nanos expected_ttft() const noexcept { return expected_wait + expected_prefill + expected_transfer; }
};

}  // namespace warmroute
