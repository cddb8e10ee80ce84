// Payloads as vLLM writes them: batches of BlockStored events whose token ids come from a vocabulary of 128 k, in blocks of 16 tokens.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "prefix_workloads.hpp"

namespace warmroute::bench {

inline constexpr std::size_t kBlockTokens = 16;
inline constexpr std::uint64_t kVocabulary = 128'000;

inline void put_be(std::string& out, std::uint64_t v, int bytes) {
  for (int b = bytes - 1; b >= 0; --b) out.push_back(static_cast<char>(v >> (8 * b) & 0xff));
}
inline void put_number(std::string& out, std::uint64_t v) {  // the shortest form, as the engines' encoder
  if (v < 0x80) return out.push_back(static_cast<char>(v));
  const int log = v < 0x100 ? 0 : v < 0x10000 ? 1 : v < 0x100000000 ? 2 : 3;
  out.push_back(static_cast<char>(0xcc + log));
  put_be(out, v, 1 << log);
}
inline void put_text(std::string& out, std::string_view text) {
  out.push_back(static_cast<char>(0xa0 | text.size()));
  out += text;
}
inline void put_list(std::string& out, std::size_t count) {
  out.push_back('\xdc');
  put_be(out, count, 2);
}

inline std::uint32_t token_of(std::uint64_t prompt, std::size_t at) {
  return static_cast<std::uint32_t>(mix(prompt << 32 | at) % kVocabulary);
}
inline std::uint64_t name_of(std::uint64_t prompt, std::size_t block) { return mix(prompt << 20 | block); }

// Blocks [first, first + count) of one prompt.
inline void put_event(std::string& out, std::uint64_t prompt, std::size_t first, std::size_t count, bool map) {
  const auto key = [&](std::string_view name) {
    if (map) put_text(out, name);
  };
  out.push_back(map ? '\x89' : '\x9a');
  key("type");
  put_text(out, "BlockStored");
  key("block_hashes");
  put_list(out, count);
  for (std::size_t b = first; b < first + count; ++b) put_number(out, name_of(prompt, b));
  key("parent_block_hash");
  first == 0 ? out.push_back('\xc0') : put_number(out, name_of(prompt, first - 1));
  key("token_ids");
  put_list(out, count * kBlockTokens);
  for (std::size_t t = first * kBlockTokens; t < (first + count) * kBlockTokens; ++t) {
    put_number(out, token_of(prompt, t));
  }
  key("block_size");
  put_number(out, kBlockTokens);
  key("lora_id");
  out.push_back('\xc0');
  key("medium");
  put_text(out, "GPU");
  key("lora_name");
  out.push_back('\xc0');
  if (!map) out.push_back('\xc0');
  key("group_idx");
  put_number(out, 0);
}

// form 0: one array event, as vLLM up to 0.23; 1: one map event, as today; 2: a map event for each block.
inline std::string payload_of(std::uint64_t prompt, std::size_t blocks, std::int64_t form) {
  std::string out = "\x93\xcb";
  put_be(out, std::bit_cast<std::uint64_t>(1.7e9), 8);
  put_list(out, form == 2 ? blocks : 1);
  for (std::size_t b = 0; b < blocks; b += form == 2 ? 1 : blocks) {
    put_event(out, prompt, b, form == 2 ? 1 : blocks, form != 0);
  }
  out.push_back('\0');
  return out;
}

inline std::string removal_of(std::uint64_t prompt, std::size_t blocks) {
  std::string out = "\x93\xcb";
  put_be(out, std::bit_cast<std::uint64_t>(1.7e9), 8);
  put_list(out, 1);
  out.push_back('\x84');
  put_text(out, "type");
  put_text(out, "BlockRemoved");
  put_text(out, "block_hashes");
  put_list(out, blocks);
  for (std::size_t b = blocks; b-- > 0;) put_number(out, name_of(prompt, b));  // leaf first, as engines evict
  put_text(out, "medium");
  put_text(out, "GPU");
  put_text(out, "group_idx");
  out.push_back('\0');
  out.push_back('\0');
  return out;
}

}  // namespace warmroute::bench
