/// A decision as C sees it.
#pragma once

#include "support.hpp"
#include "warmroute/route/decision.hpp"

namespace warmroute::capi {

/// Every field but struct_size.
inline void fill(wr_decision& out, const Decision& d) noexcept {
  out.status = WR_STATUS_OK;
  out.verdict = static_cast<std::uint32_t>(d.verdict);
  out.reason = static_cast<std::uint32_t>(d.reason);
  out.replica = id_of(d.replica);
  out.prefill_replica = id_of(d.prefill_replica);
  static_assert(WR_MAX_FALLBACKS == kMaxFallbacks);
  for (std::size_t i = 0; i < kMaxFallbacks; ++i) out.fallbacks[i] = id_of(d.fallback_ids[i]);
  out.fallback_count = d.fallback_count;
  out.class_id = d.class_id;
  out.priority = d.priority;
  out.reserved0 = 0;
  out.ticket = static_cast<std::uint64_t>(d.ticket);
  out.input_tokens = d.input_tokens.value;
  for (std::size_t i = 0; i < kTierCount; ++i) out.cached_tokens[i] = d.cached_tokens[i].value;
  out.best_cached_tokens = d.best_cached_tokens.value;
  out.expected_wait_ns = d.expected_wait.value;
  out.expected_prefill_ns = d.expected_prefill.value;
  out.retry_after_ns = d.retry_after.value;
  out.shared_tokens = d.cached_tokens[static_cast<std::size_t>(Tier::shared)].value;
  out.decode_cached_tokens = d.decode_cached_tokens.value;
  out.expected_transfer_ns = d.expected_transfer.value;
  out.split = static_cast<std::uint32_t>(d.split);
  out.reserved1 = 0;
}

}  // namespace warmroute::capi
