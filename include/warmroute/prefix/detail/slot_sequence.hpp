/// What a llama.cpp server is told by its command line, and a sequence of its slots, kept or looked at (see prefix/detail/slot_cache.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace warmroute {

/// A server's settings, as its command line says them. The defaults are those of `llama-server` without any.
struct SlotCacheOptions {
  std::uint32_t slots = 4;           ///< --parallel
  bool unified = true;               ///< --kv-unified; with --parallel given it is off unless asked for
  bool save_idle = true;             ///< --cache-idle-slots
  std::int64_t ram_bytes = 65'536;   ///< --cache-ram; 0 = no RAM cache, negative = no limit
  std::int64_t bytes_per_token = 1;  ///< of a saved state; 1: `ram_bytes` counts tokens
  std::int64_t bytes_per_sequence = 0;
  std::int64_t context_tokens = 0;  ///< --ctx-size, of all slots: RAM may always hold that many tokens
  float similarity = 0.1F;          ///< --slot-prompt-similarity; 0 = slots are taken in turn
};

namespace detail {

/// A sequence as the rules see it: leading elements whose content is known, and the length of the whole in tokens. Behind them lies what nobody
/// told: the part of a block, an answer. In token grain there is no such rest: an element is a token.
template <class Element>
struct SlotView {
  std::span<const Element> content;
  std::int64_t tokens = 0;
  std::int64_t tokens_per_element_milli = 1'000;
};

/// Such a sequence, kept. Copies share the content.
template <class Element>
struct SlotSequence {
  std::shared_ptr<const std::vector<Element>> elements;
  std::size_t known = 0;  // of elements
  std::int64_t tokens = 0;
  std::int64_t tokens_per_element_milli = 1'000;
  std::uint64_t born = 0;  // turn at which it was complete

  SlotSequence() = default;
  SlotSequence(std::span<const Element> content, std::int64_t token_count, std::int64_t milli = 1'000)
      : elements(std::make_shared<const std::vector<Element>>(content.begin(), content.end())),
        known(content.size()),
        tokens(token_count),
        tokens_per_element_milli(milli) {}
  [[nodiscard]] std::span<const Element> content() const noexcept {
    return known == 0 ? std::span<const Element>{} : std::span<const Element>{elements->data(), known};
  }
  [[nodiscard]] SlotView<Element> view() const noexcept { return {content(), tokens, tokens_per_element_milli}; }
  [[nodiscard]] bool empty() const noexcept { return tokens == 0; }
  [[nodiscard]] bool same_as(const SlotSequence& o) const noexcept {
    return elements == o.elements && known == o.known;
  }
};

}  // namespace detail
}  // namespace warmroute
