/// A deterministic stand-in for a tokenizer: four bytes of text are one token. Engine, gateway and replay use the same
/// one, so that equal prompts have equal token ids everywhere.
///
/// Invariant: token i depends on bytes [4i, 4i + 4) alone; texts that share their first n bytes share their first n / 4
/// tokens.
/// Does not: know any real vocabulary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace warmroute::examples {

inline constexpr std::size_t kToyTokenBytes = 4;
inline constexpr std::uint32_t kToyVocabulary = 128'000;

/// returns: the token of at most 4 bytes; pieces of different length differ.
[[nodiscard]] inline std::uint32_t toy_token(std::string_view piece) noexcept {
  std::uint64_t word = piece.size();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(piece[i])} << (8 * (i + 1));
  }
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
  word ^= word >> 31;
  return static_cast<std::uint32_t>(((word >> 32) * kToyVocabulary) >> 32);
}

/// The same as a callback of ingest/request_body.hpp. returns: how many tokens `text` has; writes at most `capacity` of
/// them.
inline std::size_t toy_encode(void* /*user*/, std::string_view text, std::uint32_t* out, std::size_t capacity) {
  const std::size_t count = (text.size() + kToyTokenBytes - 1) / kToyTokenBytes;
  for (std::size_t i = 0; i < std::min(count, capacity); ++i)
    out[i] = toy_token(text.substr(i * kToyTokenBytes, kToyTokenBytes));
  return count;
}

/// Appends the tokens of `text`; the last piece may be shorter than 4 bytes and is a token too.
inline void toy_tokenize(std::string_view text, std::vector<std::uint32_t>& tokens) {
  const std::size_t before = tokens.size();
  const std::size_t count = toy_encode(nullptr, text, nullptr, 0);
  tokens.resize(before + count);
  toy_encode(nullptr, text, tokens.data() + before, count);
}

[[nodiscard]] inline std::vector<std::uint32_t> toy_tokenize(std::string_view text) {
  std::vector<std::uint32_t> tokens;
  toy_tokenize(text, tokens);
  return tokens;
}

}  // namespace warmroute::examples
