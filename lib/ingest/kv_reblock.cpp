#include "ingest/kv_reblock.hpp"

#include <algorithm>

#include "ingest/kv_decoder.hpp"

namespace warmroute {

using ingest::PackReader;

namespace ingest {

void Reblocker::set_sizes(std::uint32_t page_tokens, std::uint32_t pages_per_block) {
  if (page_tokens == page_tokens_ && pages_per_block == pages_per_block_) return;
  clear();
  page_tokens_ = page_tokens;
  pages_per_block_ = pages_per_block;
}

void Reblocker::clear() noexcept {
  table_.clear();
  tokens_.clear();
  free_.clear();
}

bool Reblocker::open_pages(EngineHash parent, Page* out, std::size_t& count, EngineHash& border,
                           bool& at_root) const noexcept {
  const Entry* entry = table_.find(parent);
  if (entry == nullptr) return false;
  border = parent;
  at_root = false;
  count = entry->behind + 1u == pages_per_block_ ? 0 : entry->behind + 1u;
  for (std::size_t i = count; i != 0; --i) {
    // Each lies one page further from the border than the one before it; a name that was given anew in between ends the chain.
    if (entry == nullptr || entry->behind + 1u != i) return false;
    out[i - 1] = {border, entry->object, tokens_.data() + std::size_t{entry->tokens} * page_tokens_};
    at_root = entry->root;
    border = entry->previous;
    entry = at_root ? nullptr : table_.find(border);
  }
  return true;
}

void Reblocker::put(const Page& page, const EngineHash* previous, std::uint32_t behind) {
  Entry entry;
  entry.used = true;
  entry.root = previous == nullptr;
  if (previous != nullptr) entry.previous = *previous;
  entry.object = page.object;
  entry.behind = static_cast<std::uint16_t>(behind);
  if (free_.empty()) {
    if (tokens_.size() + page_tokens_ > kMaxTokens) return;
    const std::size_t pages = tokens_.size() / page_tokens_ + 1;
    if (free_.capacity() < pages) free_.reserve(2 * pages);  // so that erasing never asks for memory
    free_.push_back(static_cast<std::uint32_t>(pages - 1));
    tokens_.resize(tokens_.size() + page_tokens_);
  }
  entry.tokens = free_.back();
  Entry old;
  if (!table_.put(page.id, entry, old)) return;
  free_.pop_back();
  std::copy_n(page.tokens, page_tokens_, tokens_.begin() + std::ptrdiff_t{entry.tokens} * page_tokens_);
  if (!old.empty()) free_.push_back(old.tokens);
}

void Reblocker::erase(EngineHash id) noexcept {
  const Entry old = table_.erase(id);
  if (!old.empty()) free_.push_back(old.tokens);
}

}  // namespace ingest

// The event's pages, and those that lie open before them, become blocks of ours; what is left over waits for the next event.
void KvEventDecoder::Impl::join_blocks() {
  KvEvent& e = draft.event;
  const std::size_t page = engine_block_size(), per_block = options.block_size / page, own = draft.ids_count;
  reblocker.set_sizes(static_cast<std::uint32_t>(page), static_cast<std::uint32_t>(per_block));
  pages.resize_down(0);
  ingest::Reblocker::Page* const joint = pages.room(per_block + own);
  std::size_t open = 0;
  EngineHash border{};
  bool at_root = e.at_root();
  if (!at_root && !reblocker.open_pages(*e.parent, joint, open, border, at_root)) {
    e.use = KvUse::unaligned;
    return;
  }
  // One run of tokens. Room first: it may move those that are there.
  const std::size_t all = (open + own) * page + (e.eagle ? 1 : 0);
  std::uint32_t* const joined = tokens.room(all);
  for (std::size_t i = 0; i < open; ++i) std::copy_n(joint[i].tokens, page, joined + i * page);
  std::copy_n(tokens.data() + draft.tokens_begin, draft.tokens_count, joined + open * page);
  const EngineHash* const in = ids.data() + draft.ids_begin;
  PackReader extra(e.extra_keys);
  std::uint32_t entries = 0;
  if (draft.extra_count != 0) static_cast<void>(extra.read_array(entries));
  for (std::size_t i = 0; i < own; ++i) {
    joint[open + i] = {in[i], entries == 0 ? 0 : objects_of(extra, i == 0), joined + (open + i) * page};
    const EngineHash* const previous = i != 0 ? &in[i - 1] : e.at_root() ? nullptr : &*e.parent;
    reblocker.put(joint[open + i], previous, static_cast<std::uint32_t>((open + i) % per_block));
  }
  const std::size_t count = (open + own) / per_block;
  if (count == 0) {
    e.use = KvUse::partial_block;
    return;
  }
  draft.tokens_begin = tokens.size();
  draft.tokens_count = count * options.block_size + (e.eagle ? 1 : 0);
  tokens.commit(draft.tokens_count);
  EngineHash* const names = ids.room(count);
  for (std::size_t b = 0; b < count; ++b) names[b] = joint[(b + 1) * per_block - 1].id;
  draft.ids_begin = ids.size();
  draft.ids_count = count;
  ids.commit(count);
  if (at_root) {
    e.parent.reset();
  } else {
    e.parent = border;
  }
  if (options.hash) hash_joined(per_block);
}

void KvEventDecoder::Impl::hash_joined(std::size_t pages_per_block) {
  const bool eagle = draft.event.eagle;
  const std::size_t size = options.block_size;
  const std::span<const std::uint32_t> all(tokens.data() + draft.tokens_begin, draft.tokens_count);
  draft.blocks_count = draft.ids_count;
  const std::span<BlockHash> out(blocks.room(draft.blocks_count), draft.blocks_count);
  blocks.commit(draft.blocks_count);
  eagle ? hash_eagle_blocks(all, options.block_size, draft.seed, out)
        : hash_token_blocks(all, options.block_size, draft.seed, out);
  for (std::size_t b = 0; b < out.size(); ++b) {
    objects.resize_down(0);
    for (std::size_t i = b * pages_per_block; i < (b + 1) * pages_per_block; ++i) {
      const std::uint64_t object = pages.data()[i].object;
      const auto known = objects.from(0);
      if (object != 0 && std::find(known.begin(), known.end(), object) == known.end()) objects.push(object);
    }
    if (objects.size() == 0) continue;
    const std::span<const std::uint64_t> here = objects.from(0);
    hash_multimodal_blocks(all.subspan(b * size, size + (eagle ? 1 : 0)), options.block_size, draft.seed, {&here, 1},
                           eagle, out.subspan(b, 1));
  }
}

// Of removed pages, and of those on another tier, only such as end a block of ours have a name in the index.
void KvEventDecoder::Impl::keep_borders() {
  reblocker.set_sizes(engine_block_size(), options.block_size / engine_block_size());
  EngineHash* const out = ids.room(draft.ids_count);
  std::size_t kept = 0;
  for (const EngineHash id : ids.from(draft.ids_begin).first(draft.ids_count)) {
    if (reblocker.ends_block(id)) out[kept++] = id;
    if (draft.event.type == KvEventType::removed && draft.event.tier == Tier::device) reblocker.erase(id);
  }
  draft.ids_begin = ids.size();
  draft.ids_count = kept;
  ids.commit(kept);
  if (kept == 0) draft.event.use = KvUse::nothing;
}
}  // namespace warmroute
