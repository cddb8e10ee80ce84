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
  Health health = Health::up;
  std::string health_reason{};

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
