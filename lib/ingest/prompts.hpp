// Raw prompts (completions) and inputs (embeddings): a text, a list of texts, token ids, a list of lists of ids.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/body_reader.hpp"

namespace warmroute::ingest {

/// Token ids of one body's prompts, one prompt after another. Memory is kept between bodies.
class TokenIds {
 public:
  void clear() noexcept {
    count_ = 0;
    ends_.clear();
  }
  /// Room for `count` ids more behind the last one. alloc: only beyond what any body needed before
  std::uint32_t* room(std::size_t count);
  [[nodiscard]] std::size_t capacity_left() const noexcept { return ids_.size() - count_; }
  void take(std::size_t count) noexcept { count_ += count; }
  void end_prompt() { ends_.push_back(count_); }
  [[nodiscard]] std::span<const std::uint32_t> all() const noexcept { return {ids_.data(), count_}; }
  [[nodiscard]] std::span<const std::uint32_t> first_prompt() const noexcept {
    return {ids_.data(), ends_.empty() ? count_ : ends_.front()};
  }
  [[nodiscard]] std::span<const std::size_t> ends() const noexcept { return ends_; }
  void reset(std::size_t keep_bytes) noexcept;

 private:
  std::vector<std::uint32_t> ids_;  // its size is what is allocated; ids_[count_] on are scratch
  std::size_t count_ = 0;
  std::vector<std::size_t> ends_;
};

/// What read_prompts() found. Texts are nodes; only the caller knows whether they are needed as text.
struct Prompts {
  NodeIndex single = kNoNode;  ///< a string prompt
  NodeIndex list = kNoNode;    ///< a list of string prompts
  bool ids = false;            ///< ids were read
  std::size_t count = 0;
};

/// errors: missing_field, wrong_type, empty_prompt, value_out_of_range
bool read_prompts(BodyReader& reader, Slot slot, TokenIds& ids, Prompts& prompts);

}  // namespace warmroute::ingest
