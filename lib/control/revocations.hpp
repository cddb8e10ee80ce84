// What was ever revoked, up to which version: it holds against every snapshot, also against one that is older than a later
// issue of the same key. Private to lib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "warmroute/usage/keys.hpp"

namespace warmroute::control {

class Revocations {
 public:
  // What the records revoke is remembered, and never forgotten. returns: whether anything is new.
  bool remember(std::span<const KeyRecord> records);

  // What a key set is to hold for a snapshot of `records`. Empty: they are right as they are.
  [[nodiscard]] std::vector<KeyRecord> merged(std::span<const KeyRecord> records) const;

  // All of them as tombstones, in a fixed order.
  [[nodiscard]] std::vector<KeyRecord> records() const;
  [[nodiscard]] std::size_t size() const noexcept { return ids_.size() + digests_.size(); }

 private:
  [[nodiscard]] bool are_all_in(std::span<const KeyRecord> records) const;

  // Asked with views: each key of a snapshot is looked up.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  // To the highest version that is revoked.
  using Known = std::unordered_map<std::string, KeyRecord, Hash, std::equal_to<>>;

  Known ids_;      // by public id
  Known digests_;  // by digest, of whole keys
};

}  // namespace warmroute::control
