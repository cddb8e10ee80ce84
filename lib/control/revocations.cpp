#include "control/revocations.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace warmroute::control {
namespace {

std::string_view name_of(const KeyDigest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

}  // namespace

bool Revocations::remember(std::span<const KeyRecord> records) {
  bool changed = false;
  const auto add = [&](Known& known, std::string_view name, const KeyRecord& key, std::span<const KeyDigest> digests) {
    const auto [it, fresh] = known.try_emplace(std::string(name));
    if (!fresh && it->second.version >= key.version) return;
    it->second = KeyRecord{key.public_id, key.key_id, key.team_id, key.version, true, {digests.begin(), digests.end()}};
    changed = true;
  };
  for (const KeyRecord& key : records) {
    if (!key.revoked) continue;
    if (!key.public_id.empty()) {
      add(ids_, key.public_id, key, {});
    } else {
      for (const KeyDigest& digest : key.digests) add(digests_, name_of(digest), key, {&digest, 1});
    }
  }
  return changed;
}

// As a control that keeps its tombstones in its document has it: then nothing is copied.
bool Revocations::are_all_in(std::span<const KeyRecord> records) const {
  std::size_t met = 0;
  // returns: whether the record says of this name what is known.
  const auto fits = [&](const Known& known, std::string_view name, const KeyRecord& key) {
    const auto it = known.find(name);
    if (it == known.end()) return !key.revoked;
    ++met;
    return key.revoked ? key.version == it->second.version : key.version > it->second.version;
  };
  for (const KeyRecord& key : records) {
    if (!key.public_id.empty()) {
      if (!fits(ids_, key.public_id, key)) return false;
      continue;
    }
    for (const KeyDigest& digest : key.digests) {
      if (!fits(digests_, name_of(digest), key)) return false;
    }
  }
  return met == size();
}

std::vector<KeyRecord> Revocations::merged(std::span<const KeyRecord> records) const {
  std::vector<KeyRecord> out;
  if (size() == 0 || are_all_in(records)) return out;
  std::unordered_set<const KeyRecord*> newer;  // tombstones of what is there again since
  const auto dead = [&](const Known& known, std::string_view name, std::uint64_t version) {
    const auto it = known.find(name);
    if (it == known.end()) return false;
    if (version <= it->second.version) return true;
    newer.insert(&it->second);
    return false;
  };
  out.reserve(records.size() + size());
  for (const KeyRecord& key : records) {
    if (key.revoked) continue;  // known, and added below
    if (!key.public_id.empty()) {
      if (!dead(ids_, key.public_id, key.version)) out.push_back(key);
      continue;
    }
    KeyRecord alive = key;
    std::erase_if(alive.digests, [&](const KeyDigest& d) { return dead(digests_, name_of(d), key.version); });
    if (!alive.digests.empty()) out.push_back(std::move(alive));
  }
  for (const Known* known : {&ids_, &digests_}) {
    for (const auto& [name, tombstone] : *known) {
      if (!newer.contains(&tombstone)) out.push_back(tombstone);
    }
  }
  return out;
}

std::vector<KeyRecord> Revocations::records() const {
  std::vector<const Known::value_type*> order;
  order.reserve(size());
  std::vector<KeyRecord> out;
  out.reserve(size());
  for (const Known* known : {&ids_, &digests_}) {
    order.clear();
    for (const auto& each : *known) order.push_back(&each);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const auto* each : order) out.push_back(each->second);
  }
  return out;
}

}  // namespace warmroute::control
