// What was ever revoked, up to which version: it holds against every snapshot, also against one that is older than a later
// issue of the same key. Private to lib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
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
  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }

 private:
  // "p" and the public id, or "d" and the digest of a whole key, to the highest version that is revoked.
  std::map<std::string, KeyRecord, std::less<>> known_;
};

}  // namespace warmroute::control
