// Events as engines send them, in both forms.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv_pack.hpp"
#include "warmroute/ingest/kv_events.hpp"

namespace warmroute::test {

using Ids = std::vector<std::uint64_t>;
using TokenList = std::vector<std::uint64_t>;

inline TokenList count_from(std::uint64_t first, std::size_t count) {
  TokenList tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}
inline std::vector<std::uint32_t> narrow(const TokenList& tokens) {
  std::vector<std::uint32_t> out;
  for (const auto t : tokens) out.push_back(static_cast<std::uint32_t>(t));
  return out;
}

/// A BlockStored; members that are empty are sent as nil, or in map form not at all.
struct Stored {
  Ids ids;
  std::optional<std::uint64_t> parent{};
  TokenList tokens{};
  std::uint64_t size = 4;
  std::optional<std::int64_t> lora_id{};
  std::string medium = "GPU";
  std::string lora_name{};
  std::string extra_keys{};  // MessagePack
  std::optional<std::uint64_t> group{};
  std::string kind{};
  std::string salt{};      // map form only
  std::string locality{};  // map form only
  bool pairs = false;

  [[nodiscard]] Pack token_list() const {
    Pack p;
    if (!pairs) return p.list(tokens), p;
    p.array(tokens.size() - 1);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) p.array(2).u(tokens[i]).u(tokens[i + 1]);
    return p;
  }
  [[nodiscard]] std::string as_array() const {
    Pack p;
    p.array(12).text("BlockStored").list(ids);
    parent ? p.u(*parent) : p.nil();
    p.raw(token_list()).u(size);
    lora_id ? p.i(*lora_id) : p.nil();
    medium.empty() ? p.nil() : p.text(medium);
    lora_name.empty() ? p.nil() : p.text(lora_name);
    extra_keys.empty() ? p.nil() : p.raw(extra_keys);
    group ? p.u(*group) : p.nil();
    kind.empty() ? p.nil() : p.text(kind);
    return p.nil().str();
  }
  /// `turn` turns the order of keys.
  [[nodiscard]] std::string as_map(std::size_t turn = 0) const {
    std::vector<std::string> members;
    const auto add = [&](std::string_view key, std::string_view value) {
      members.push_back(Pack().text(key).raw(value).str());
    };
    add("type", Pack().text("BlockStored"));
    add("block_hashes", Pack().list(ids));
    add("parent_block_hash", parent ? Pack().u(*parent) : Pack().nil());
    add("token_ids", token_list());
    add("block_size", Pack().u(size));
    add("lora_id", lora_id ? Pack().i(*lora_id) : Pack().nil());
    if (!medium.empty()) add("medium", Pack().text(medium));
    if (!lora_name.empty()) add("lora_name", Pack().text(lora_name));
    if (!extra_keys.empty()) add("extra_keys", extra_keys);
    if (group) add("group_idx", Pack().u(*group));
    if (!kind.empty()) add("kv_cache_spec_kind", Pack().text(kind));
    if (!salt.empty()) add("cache_salt", Pack().text(salt));
    if (!locality.empty()) add("locality", Pack().text(locality));
    Pack p;
    p.map(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) p.raw(members[(i + turn) % members.size()]);
    return p.str();
  }
};

inline std::string removed(const Ids& ids, std::string_view medium = "GPU", std::optional<std::uint64_t> group = {}) {
  Pack p;
  p.array(4).text("BlockRemoved").list(ids).text(medium);
  group ? p.u(*group) : p.nil();
  return p.str();
}
inline std::string cleared() { return Pack().array(1).text("AllBlocksCleared").str(); }

inline std::string batch(const std::vector<std::string>& events) {
  Pack p;
  p.array(3).f64(1.5).array(events.size());
  for (const std::string& e : events) p.raw(e);
  return p.u(0).str();
}

}  // namespace warmroute::test
