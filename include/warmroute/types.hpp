/// Strong types that every room shares: identities, hashes, counts and times.
/// They are plain 4- or 8-byte values: copying is free, mixing them up does not compile.
/// No room reads a clock; `Nanos` always comes from the caller and is monotonic.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace warmroute {

namespace detail {
/// A signed 64-bit amount of one unit. Same-unit arithmetic only; `.value` leaves the type system.
template <class Unit>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() noexcept = default;
  constexpr explicit Quantity(std::int64_t v) noexcept : value(v) {}

  friend constexpr auto operator<=>(Quantity, Quantity) noexcept = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) noexcept { return Quantity{a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) noexcept { return Quantity{a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) noexcept { return Quantity{a.value * n}; }
  constexpr Quantity& operator+=(Quantity b) noexcept {
    value += b.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) noexcept {
    value -= b.value;
    return *this;
  }
};
}  // namespace detail

/// units: nanoseconds. As a point in time: of the caller's monotonic clock.
using Nanos = detail::Quantity<struct NanosUnit>;
/// units: tokens of the engine's tokenizer.
using Tokens = detail::Quantity<struct TokensUnit>;

constexpr Nanos microseconds(std::int64_t n) noexcept { return Nanos{n * 1'000}; }
constexpr Nanos milliseconds(std::int64_t n) noexcept { return Nanos{n * 1'000'000}; }
constexpr Nanos seconds(std::int64_t n) noexcept { return Nanos{n * 1'000'000'000}; }

/// Hash of the content of one block alone (Dynamo's "local" hash), see prefix/block_hash.hpp.
enum class BlockHash : std::uint64_t {};
/// Hash of one block and of everything before it: two equal values mean two equal prefixes.
enum class SequenceHash : std::uint64_t {};

constexpr std::uint64_t to_u64(BlockHash h) noexcept { return static_cast<std::uint64_t>(h); }
constexpr std::uint64_t to_u64(SequenceHash h) noexcept { return static_cast<std::uint64_t>(h); }

/// Where a KV block lies: in a replica's memory hierarchy, or in a store that every replica of its pool can load from.
enum class Tier : std::uint8_t { device = 0, host = 1, disk = 2, shared = 3 };
inline constexpr std::size_t kTierCount = 3;     ///< of one replica
inline constexpr std::size_t kAllTierCount = 4;  ///< the shared store included

/// One engine instance or one data-parallel rank of it, as the replica table numbers it.
/// `slot` is dense and is used again after a removal; `generation` tells the tenants of a slot apart, so
/// that a late release or event of a removed replica never touches the books of its successor.
struct ReplicaId {
  std::uint32_t slot = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t generation = 0;

  friend constexpr auto operator<=>(ReplicaId, ReplicaId) noexcept = default;
  [[nodiscard]] constexpr bool valid() const noexcept { return slot != std::numeric_limits<std::uint32_t>::max(); }
};
inline constexpr ReplicaId kNoReplica{};

/// The handle of one routed request: slot and generation in the router's ticket table.
/// Zero is never issued. lifetime: until finish, fail or the end of its lease; later uses are counted and harmless.
enum class Ticket : std::uint64_t {};
inline constexpr Ticket kNoTicket{0};

}  // namespace warmroute
