#include "control/revocations.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace warmroute::control {
namespace {

std::string name_of(const KeyRecord& key) { return "p" + key.public_id; }
std::string name_of(const KeyDigest& digest) { return "d" + std::string(digest.bytes.begin(), digest.bytes.end()); }

}  // namespace

bool Revocations::remember(std::span<const KeyRecord> records) {
  bool changed = false;
  const auto add = [&](std::string name, const KeyRecord& key, std::span<const KeyDigest> digests) {
    const auto [it, fresh] = known_.try_emplace(std::move(name));
    if (!fresh && it->second.version >= key.version) return;
    it->second = KeyRecord{key.public_id, key.key_id, key.team_id, key.version, true, {digests.begin(), digests.end()}};
    changed = true;
  };
  for (const KeyRecord& key : records) {
    if (!key.revoked) continue;
    if (!key.public_id.empty()) {
      add(name_of(key), key, {});
    } else {
      for (const KeyDigest& digest : key.digests) add(name_of(digest), key, {&digest, 1});
    }
  }
  return changed;
}

std::vector<KeyRecord> Revocations::merged(std::span<const KeyRecord> records) const {
  std::vector<KeyRecord> out;
  if (known_.empty()) return out;
  std::set<std::string, std::less<>> newer;  // revoked once, and there again since
  const auto dead = [&](std::string name, std::uint64_t version) {
    const auto it = known_.find(name);
    if (it == known_.end()) return false;
    if (version <= it->second.version) return true;
    newer.insert(std::move(name));
    return false;
  };
  out.reserve(records.size() + known_.size());
  for (const KeyRecord& key : records) {
    if (key.revoked) continue;  // known, and added below
    if (!key.public_id.empty()) {
      if (!dead(name_of(key), key.version)) out.push_back(key);
      continue;
    }
    KeyRecord alive = key;
    std::erase_if(alive.digests, [&](const KeyDigest& d) { return dead(name_of(d), key.version); });
    if (!alive.digests.empty()) out.push_back(std::move(alive));
  }
  for (const auto& [name, tombstone] : known_) {
    if (!newer.contains(name)) out.push_back(tombstone);
  }
  return out;
}

std::vector<KeyRecord> Revocations::records() const {
  std::vector<KeyRecord> out;
  out.reserve(known_.size());
  std::transform(known_.begin(), known_.end(), std::back_inserter(out), [](const auto& each) { return each.second; });
  return out;
}

}  // namespace warmroute::control
