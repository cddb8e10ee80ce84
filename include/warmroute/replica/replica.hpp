/// Who a replica is: identity, role, weight, labels, adapters, health. Plain data; the table gives it an id.
/// The unit of routing is (name, dp_rank): data-parallel ranks of one engine have caches of their own.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/replica/load.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

enum class Role : std::uint8_t { unified = 0, prefill = 1, decode = 2 };
constexpr std::string_view role_name(Role r) noexcept {
  return r == Role::unified ? "unified" : r == Role::prefill ? "prefill" : "decode";
}

/// up: takes requests. draining: finishes what it has. down: takes nothing; what it holds is kept, since a
/// readiness flap does not empty a cache (only a restart or a removal does).
enum class Health : std::uint8_t { up = 0, draining = 1, down = 2 };
constexpr std::string_view health_name(Health h) noexcept {
  return h == Health::up ? "up" : h == Health::draining ? "draining" : "down";
}

/// How an engine keeps what it has computed. paged: blocks that requests share (vLLM, SGLang, TensorRT-LLM). slots: whole sequences, each in
/// a slot of its own or in RAM (llama.cpp), where a fork cuts its sibling's tail.
enum class CacheKind : std::uint8_t { paged = 0, slots = 1 };
constexpr std::string_view cache_kind_name(CacheKind k) noexcept { return k == CacheKind::paged ? "paged" : "slots"; }

/// Of an engine that keeps slots; no signal tells them. The defaults are those of `llama-server` without flags.
struct SlotSpec {
  std::uint32_t count = 4;  ///< --parallel; 1..256
  bool unified = true;      ///< --kv-unified: with --parallel given it is off unless asked for
  std::int64_t ram_tokens =
      65'536;  ///< --cache-ram, in tokens: 8 GiB at the 128 KiB a token of an 8B model; 0 = no cache in RAM

  friend bool operator==(const SlotSpec&, const SlotSpec&) = default;
};

struct ReplicaSpec {
  std::string name;
  std::uint32_t dp_rank = 0;
  std::string pool{};  ///< the model it serves, as requests name it; "" serves every model that has no pool of its own
  std::string
      ring_id{};  ///< stable slot name on the ring; "" = the name, with "/<dp_rank>" behind it for ranks above 0
  Role role = Role::unified;
  double weight = 1.0;      ///< share of the ring and of the load bound, > 0; hardware speed belongs into `rates`
  bool any_adapter = true;  ///< loads whatever is asked for; a list in `adapters` or false: only what is listed
  std::vector<std::string> adapters{};
  std::vector<std::pair<std::string, std::string>> labels{};
  Rates rates{};
  std::int64_t capacity_tokens = 0;  ///< of its KV cache; 0 = unknown until the engine says so (signals)
  CacheKind cache_kind = CacheKind::paged;
  SlotSpec slots{};  ///< used where cache_kind is slots; `capacity_tokens` is not used there
  /// A replica that comes up takes less at first: its cost counts 1 / slow_start_weight times, falling to once over `slow_start`.
  Nanos slow_start{0};
  double slow_start_weight = 0.1;
  Health health = Health::up;
  std::string health_reason{};
  Nanos drain_until{0};  ///< of a draining one: when it is taken for down (Router::drain); 0 = it may take its time

  [[nodiscard]] std::string ring_name() const {
    if (!ring_id.empty()) return ring_id;
    return dp_rank == 0 ? name : name + "/" + std::to_string(dp_rank);
  }
  /// A list of adapters is the whole list, whatever `any_adapter` says.
  [[nodiscard]] bool takes_any_adapter() const noexcept { return any_adapter && adapters.empty(); }
  [[nodiscard]] bool carries(std::string_view adapter) const noexcept {
    if (adapter.empty() || takes_any_adapter()) return true;
    for (const auto& a : adapters) {
      if (a == adapter) return true;
    }
    return false;
  }
};

namespace detail {

/// returns: whether `text` is UTF-8 (no surrogates, no overlong forms) without control characters (C0, DEL, C1).
constexpr bool is_plain_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7F) return false;
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
    if (size == 0 || size > text.size() - i) return false;
    std::uint32_t point = size == 1 ? lead : lead & (0x7Fu >> size);
    for (std::size_t k = 1; k < size; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0u) != 0x80u) return false;
      point = (point << 6) | (next & 0x3Fu);
    }
    if (size == 2 && point < 0xA0) return false;
    if (size == 3 && (point < 0x800 || (point >= 0xD800 && point < 0xE000))) return false;
    if (size == 4 && (point < 0x10000 || point > 0x10FFFF)) return false;
    i += size;
  }
  return true;
}

}  // namespace detail

/// Names must be UTF-8 without control characters: they go into log lines, JSON and the labels of metrics.
/// errors: invalid_argument with every fault named.
inline Status validate(const ReplicaSpec& spec) {
  std::string faults;
  const auto fault = [&](std::string_view text) { faults.append(faults.empty() ? "" : "; ").append(text); };
  if (spec.name.empty()) fault("name is empty");
  const bool sayable = detail::is_plain_utf8(spec.name);
  if (!sayable || !detail::is_plain_utf8(spec.pool) || !detail::is_plain_utf8(spec.ring_id)) {
    fault("name, pool and ring_id must be UTF-8 without control characters");
  }
  if (spec.name.size() > 1024 || spec.pool.size() > 1024 || spec.ring_id.size() > 1024) {
    fault("name, pool and ring_id hold at most 1024 bytes");
  }
  if (!(std::isfinite(spec.weight) && spec.weight > 0 && spec.weight <= 1000)) fault("weight must lie in (0, 1000]");
  if (spec.capacity_tokens < 0 || spec.capacity_tokens > 1'000'000'000'000)
    fault("capacity_tokens must lie in 0..10^12");
  if (spec.slow_start < Nanos{0} || spec.slow_start > seconds(86'400)) fault("slow_start must lie in 0..1 day");
  if (!(std::isfinite(spec.slow_start_weight) && spec.slow_start_weight >= 0.001 && spec.slow_start_weight <= 1))
    fault("slow_start_weight must lie in 0.001..1");
  const bool slots = spec.cache_kind == CacheKind::slots;
  if (slots && (spec.slots.count < 1 || spec.slots.count > 256)) fault("slots must lie in 1..256");
  if (slots && (spec.slots.ram_tokens < 0 || spec.slots.ram_tokens > 1'000'000'000'000))
    fault("slot_ram_tokens must lie in 0..10^12");
  const auto& r = spec.rates;
  const auto within = [](std::int64_t v, std::int64_t most) { return v >= 0 && v <= most; };
  if (!within(r.floor_ns, 10'000'000'000) || !within(r.token_ps, 100'000'000'000) || !within(r.pair_ps, 10'000'000) ||
      !within(r.context_ps, 1'000'000'000) || !within(r.overhead_ns, 10'000'000'000)) {
    fault(
        "rates must not be negative and stay within 10 s per step, 0.1 s per token, 10 us per pair, 1 ms per context "
        "token");
  }
  if (faults.empty()) return {};
  // A message is UTF-8, too.
  return Error{Code::invalid_argument, (sayable ? "replica '" + spec.name + "': " : "replica: ") + faults, kNoOffset};
}

}  // namespace warmroute
