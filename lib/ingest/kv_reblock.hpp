// Joins an engine's small blocks ("pages") to blocks of ours: SGLang's default is pages of one token, ours of 16.
// Events begin at any page, so every page is remembered: its tokens, the page before it, and how many pages lie between it and the last
// border of ours. A block of ours is called by its last page; engines evict leaves first, so that it goes when the block is broken.
// What is not remembered (a table that is full, a parent that never came) cannot be joined: those events are left out and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ingest/kv_id_table.hpp"

namespace warmroute::ingest {

class Reblocker {
 public:
  static constexpr std::size_t kMaxPages = std::size_t{1} << 20;
  static constexpr std::size_t kMaxTokens = std::size_t{1} << 22;
  struct Page {
    EngineHash id{};
    std::uint64_t object = 0;  // what separates it beside its tokens; 0: nothing
    const std::uint32_t* tokens = nullptr;
  };

  // Before anything else. Other sizes than before forget everything.
  void set_sizes(std::uint32_t page_tokens, std::uint32_t pages_per_block);

  // The pages between the last border and the end of `parent`, oldest first, and what the block before that border is called.
  // returns: false if `parent` is not known. shape: writes fewer than pages_per_block to `out`. lifetime: of tokens: until the next put.
  bool open_pages(EngineHash parent, Page* out, std::size_t& count, EngineHash& border, bool& at_root) const noexcept;
  // A page that follows `previous` (null: begins the prompt), `behind` pages after a border (0: it is the first).
  void put(const Page& page, const EngineHash* previous, std::uint32_t behind);
  // returns: whether it ends a block of ours, or is not known.
  [[nodiscard]] bool ends_block(EngineHash id) const noexcept {
    const Entry* entry = table_.find(id);
    return entry == nullptr || entry->behind + 1u == pages_per_block_;
  }
  void erase(EngineHash id) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }

 private:
  struct Entry {
    EngineHash previous{};
    std::uint64_t object = 0;
    std::uint32_t tokens = 0;  // place in `tokens_`, in pages
    std::uint16_t behind = 0;
    bool used = false, root = false;
    [[nodiscard]] bool empty() const noexcept { return !used; }
  };

  IdTable<Entry, kMaxPages> table_;
  std::vector<std::uint32_t> tokens_;  // of pages; those in `free_` are nobody's
  std::vector<std::uint32_t> free_;
  std::uint32_t page_tokens_ = 0, pages_per_block_ = 0;
};

}  // namespace warmroute::ingest
