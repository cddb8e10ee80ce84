// Batches of KV events in MessagePack, see cache_log.hpp.
#include "engine/cache_log.hpp"

#include <bit>
#include <chrono>
#include <utility>

#include "warmroute/detail/xxh3.hpp"

namespace warmroute::examples {
namespace {

/// Appends MessagePack values, each in its shortest form.
class Packer {
 public:
  explicit Packer(std::string& out) : out_(out) {}

  void nil() { byte(0xC0); }
  void number(std::uint64_t v) {
    if (v < 0x80) return byte(v);
    if (v <= 0xFF) return sized(0xCC, v, 1);
    if (v <= 0xFFFF) return sized(0xCD, v, 2);
    if (v <= 0xFFFF'FFFF) return sized(0xCE, v, 4);
    sized(0xCF, v, 8);
  }
  void real(double v) { sized(0xCB, std::bit_cast<std::uint64_t>(v), 8); }
  void text(std::string_view s) {
    if (s.size() < 32) {
      byte(0xA0 | s.size());
    } else {
      s.size() <= 0xFF ? sized(0xD9, s.size(), 1) : sized(0xDB, s.size(), 4);
    }
    out_ += s;
  }
  void text_or_nil(std::string_view s) { s.empty() ? nil() : text(s); }
  void array(std::size_t size) { container(size, 0x90, 0xDC); }
  void map(std::size_t size) { container(size, 0x80, 0xDE); }
  template <class Numbers>
  void numbers(const Numbers& list) {
    array(list.size());
    for (const auto v : list) number(v);
  }

 private:
  void byte(std::uint64_t b) { out_ += static_cast<char>(b); }
  void sized(unsigned tag, std::uint64_t v, int bytes) {
    byte(tag);
    for (int i = bytes - 1; i >= 0; --i) byte(v >> (8 * i) & 0xFF);
  }
  void container(std::size_t size, unsigned small, unsigned tag) {
    if (size < 16) return byte(small | size);
    size <= 0xFFFF ? sized(tag, size, 2) : sized(tag + 1, size, 4);
  }
  std::string& out_;
};

/// What separates blocks from those of other requests: per block the adapter's name, and the salt on block 0.
void pack_extra_keys(Packer& pack, std::size_t blocks, bool at_root, std::string_view adapter, std::string_view salt) {
  pack.array(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const bool salted = at_root && i == 0 && !salt.empty();
    const std::size_t keys = (adapter.empty() ? 0u : 1u) + (salted ? 1u : 0u);
    if (keys == 0) {
      pack.nil();
      continue;
    }
    pack.array(keys);
    if (!adapter.empty()) pack.text(adapter);
    if (salted) pack.text(salt);
  }
}

}  // namespace

CacheLog::CacheLog(EventForm form, std::int64_t block_tokens, std::uint64_t seed, Sink sink)
    : form_(form), block_tokens_(block_tokens), seed_(seed), sink_(std::move(sink)) {}

void CacheLog::restart(std::uint64_t seed) {
  seed_ = seed;
  run_ = {};
  events_.clear();
  count_ = 0;
}

std::uint64_t CacheLog::id_of(std::uint64_t block) const noexcept {
  return XXH3_64bits_withSeed(&block, sizeof block, seed_);
}

// One instant is one step: what is evicted for a step comes as it begins, what it computed as it ends.
void CacheLog::begin(std::int64_t at_us) {
  if (at_us != at_us_) flush();
  at_us_ = at_us;
}

void CacheLog::stored(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at_us,
                      const PromptFacts& prompt) {
  begin(at_us);
  const std::uint64_t parent_id = depth == 0 ? 0 : id_of(parent);
  const bool goes_on = !run_.ids.empty() && depth > 0 && run_.ids.back() == parent_id;
  if (!goes_on) {
    end_run();
    run_.parent = parent_id;
    run_.at_root = depth == 0;
    run_.adapter = prompt.adapter;
    run_.cache_salt = prompt.cache_salt;
  }
  run_.ids.push_back(id_of(block));
  run_.token_ids.insert(run_.token_ids.end(), prompt.token_ids.begin(), prompt.token_ids.end());
}

void CacheLog::removed(std::uint64_t block, std::int64_t at_us) {
  begin(at_us);
  end_run();
  ++count_;
  Packer pack(events_);
  const std::uint64_t ids[1] = {id_of(block)};
  if (form_ == EventForm::array) {
    pack.array(4);
    pack.text("BlockRemoved");
    pack.numbers(std::span<const std::uint64_t>(ids));
    pack.text("GPU");
    pack.number(0);
    return;
  }
  pack.map(4);
  pack.text("type");
  pack.text("BlockRemoved");
  pack.text("block_hashes");
  pack.numbers(std::span<const std::uint64_t>(ids));
  pack.text("medium");
  pack.text("GPU");
  pack.text("group_idx");
  pack.number(0);
}

void CacheLog::cleared(std::int64_t at_us) {
  begin(at_us);
  end_run();
  ++count_;
  Packer pack(events_);
  if (form_ == EventForm::array) {
    pack.array(1);
  } else {
    pack.map(1);
    pack.text("type");
  }
  pack.text("AllBlocksCleared");
}

void CacheLog::end_run() {
  if (run_.ids.empty()) return;
  ++count_;
  Packer pack(events_);
  const bool as_map = form_ == EventForm::map;
  const bool extra = !run_.adapter.empty() || (run_.at_root && !run_.cache_salt.empty());
  const auto name = [&](std::string_view key) {
    if (as_map) pack.text(key);
  };
  as_map ? pack.map(extra ? 10 : 9) : pack.array(10);
  name("type");
  pack.text("BlockStored");
  name("block_hashes");
  pack.numbers(run_.ids);
  name("parent_block_hash");
  run_.at_root ? pack.nil() : pack.number(run_.parent);
  name("token_ids");
  pack.numbers(run_.token_ids);
  name("block_size");
  pack.number(static_cast<std::uint64_t>(block_tokens_));
  name("lora_id");
  pack.nil();
  name("medium");
  pack.text("GPU");
  name("lora_name");
  pack.text_or_nil(run_.adapter);
  if (extra) {
    name("extra_keys");
    pack_extra_keys(pack, run_.ids.size(), run_.at_root, run_.adapter, run_.cache_salt);
  } else if (!as_map) {
    pack.nil();
  }
  name("group_idx");
  pack.number(0);
  run_.ids.clear();
  run_.token_ids.clear();
}

void CacheLog::flush() {
  end_run();
  if (count_ == 0) return;
  std::string payload;
  Packer pack(payload);
  pack.array(3);
  pack.real(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  pack.array(count_);
  payload += events_;
  pack.nil();  // one rank
  events_.clear();
  count_ = 0;
  sink_(std::move(payload));
}

}  // namespace warmroute::examples
