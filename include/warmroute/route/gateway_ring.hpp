/// Several gateways, each with a router of its own, that keep a prompt's affinity by agreeing on whose it is: the key's gateway on a ring.
/// A gateway that gets a request asks `owner`: itself, or the one to forward it to, once.
///
///   auto ring = warmroute::GatewayRing::build(names, "gw-1");
///   auto owner = ring->owner(ring->key(request, policy), arrived_forwarded);
///   if (owner.local) router.route(request, now); else forward to names[owner.index] with the mark that it was forwarded
///
/// Invariants: a request that was forwarded is never forwarded again; a gateway that is down owns nothing, and its keys go to their next one on
/// the ring and come back with it; all gateways with equal names and policies agree.
/// Does not: open connections, or find out who is up: the caller says so with `set_up`.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/result.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/request.hpp"

namespace warmroute {

class GatewayRing {
 public:
  struct Owner {
    std::uint32_t index = 0;  ///< into `names`, as they were given
    bool local = true;        ///< this gateway serves it
  };

  /// `self` is one of `names`. errors: invalid_argument, already_exists (ring/hash_ring.hpp); not_found (self).
  static Result<GatewayRing> build(std::span<const std::string> names, std::string_view self,
                                   RingOptions options = {}) {
    std::vector<RingMember> members;
    for (std::size_t i = 0; i < names.size(); ++i) members.push_back({names[i], static_cast<std::uint32_t>(i), 1.0});
    auto ring = HashRing::build(members, options);
    if (!ring) return ring.error();
    const auto at = std::find(names.begin(), names.end(), self);
    if (at == names.end()) {
      return Error{Code::not_found, "gateway '" + std::string(self) + "' is not among the names of its ring",
                   kNoOffset};
    }
    return GatewayRing(std::move(*ring), static_cast<std::uint32_t>(at - names.begin()), names.size());
  }

  /// returns: what all gateways make of the request: its session where there is one, else its first policy.ring_key_tokens tokens (two blocks
  /// at least). Of a shorter prompt a power of two: a conversation that grows moves at six turns at most on its way to 1,024 tokens, not at each.
  /// Tenants are apart. Equal policies give equal keys; estimates and caches do not enter.
  [[nodiscard]] std::uint64_t key(const Request& r, const Policy& policy) const {
    if (!r.session.empty()) return mix(session_key(r.session, r.tenant, r.model));
    const std::string_view tenant = isolation_key(policy.isolation, r.tenant);
    const std::uint64_t scope = XXH3_64bits_withSeed(tenant.data(), tenant.size(), policy.hash_seed);
    const auto leading = [&](const void* data, std::size_t bytes) {
      return mix(XXH3_64bits_withSeed(data, bytes, scope));
    };
    if (!r.blocks.empty()) {
      // Text blocks hold 64 bytes: about as many tokens as a block of ids, at four bytes a token.
      const std::size_t per_block = r.block_kind == BlockKind::tokens ? policy.block_size : kTextBlockBytes / 4;
      const std::size_t wanted = static_cast<std::size_t>(policy.ring_key_tokens) / per_block;
      const std::size_t count = leading_part(r.blocks.size(), std::max<std::size_t>(2, wanted));
      return leading(r.blocks.data(), count * sizeof(BlockHash));
    }
    const std::size_t count = leading_part(r.token_ids.size(), static_cast<std::size_t>(policy.ring_key_tokens));
    return leading(r.token_ids.data(), count * sizeof(std::uint32_t));
  }

  /// Who serves the key: the first on its way around the ring that is up; this gateway if it was `forwarded` already, or if it is the only one
  /// left. threads: any. alloc: none. cost: some ten ns while the key's own gateway is up.
  [[nodiscard]] Owner owner(std::uint64_t key, bool forwarded) const noexcept {
    if (!forwarded) {
      RingWalk walk(ring_, key);
      for (std::uint32_t i = walk.next(); i != kNoMember; i = walk.next()) {
        if (i == self_ || up_[i].load(std::memory_order_relaxed)) return {i, i == self_};
      }
    }
    return {self_, true};
  }

  /// Whether requests may be forwarded there; all are up at first. threads: any. `index` out of range and this gateway itself are ignored.
  void set_up(std::uint32_t index, bool up) noexcept {
    if (index < count_) up_[index].store(up, std::memory_order_relaxed);
  }
  [[nodiscard]] bool up(std::uint32_t index) const noexcept {
    return index < count_ && (index == self_ || up_[index].load(std::memory_order_relaxed));
  }
  [[nodiscard]] std::uint32_t self() const noexcept { return self_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  static std::size_t leading_part(std::size_t size, std::size_t wanted) noexcept {
    return size >= wanted ? wanted : std::bit_floor(size);
  }
  GatewayRing(HashRing ring, std::uint32_t self, std::size_t count)
      : ring_(std::move(ring)), self_(self), count_(count), up_(std::make_unique<std::atomic<bool>[]>(count)) {
    for (std::size_t i = 0; i < count; ++i) up_[i].store(true, std::memory_order_relaxed);
  }

  HashRing ring_;
  std::uint32_t self_ = 0;
  std::size_t count_ = 0;
  std::unique_ptr<std::atomic<bool>[]> up_;
};

}  // namespace warmroute
