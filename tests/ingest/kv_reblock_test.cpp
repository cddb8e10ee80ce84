// Engines whose blocks are smaller than ours: their events, joined, put into the index what an index of whole prompts would hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "ingest/kv_reblock.hpp"
#include "kv_build.hpp"

namespace warmroute {
namespace {

using test::batch;
using test::count_from;
using test::Stored;

struct Joined {
  explicit Joined(std::uint32_t page, std::uint32_t block = 4) {
    options.block_size = block;
    options.engine_block_size = page;
  }
  const KvEvent& take(const std::string& event) {
    payload = batch({event});
    result = decoder.decode(payload, options);
    EXPECT_TRUE(result.ok() && result->events.size() == 1);
    static const KvEvent kNone;
    return result.ok() && !result->events.empty() ? result->events[0] : kNone;
  }
  // Into the index, as a router does.
  KvUse apply(const std::string& event) {
    const KvEvent& e = take(event);
    if (e.use != KvUse::apply) return e.use;
    if (e.type == KvEventType::removed) {
      index.remove_event(replica, e.tier, e.ids);
    } else if (e.type == KvEventType::cleared) {
      index.clear(replica);
    } else {
      const StoredBlocks s = e.stored_blocks();
      EXPECT_TRUE(index.store_event(replica, s.tier, s.parent ? &*s.parent : nullptr, s.ids, s.blocks).ok());
    }
    return e.use;
  }
  std::uint32_t held(const test::TokenList& prompt, HashSpace space = {}) {
    std::vector<BlockHash> path(prompt.size() / options.block_size);
    hash_token_blocks(test::narrow(prompt), options.block_size, block_seed(space), path);
    PrefixMatch match;
    index.match(path, match);
    return match.slots() == 0 ? 0 : match.device()[0];
  }

  KvEventDecoder decoder;
  KvEventOptions options;
  std::string payload;
  Result<KvBatch> result = KvBatch{};
  PrefixIndex index;
  ReplicaId replica{0, 1};
};

TEST(KvReblock, PagesOfOneTokenBecomeBlocks) {
  Joined engine(1);
  const auto prompt = count_from(1, 40);
  const auto pages = [&prompt](std::uint64_t first, std::size_t count) {  // page k of the prompt is called 1000 + k
    Stored s{.ids = count_from(1'000 + first, count), .tokens = {}, .size = 1};
    s.tokens.assign(prompt.begin() + static_cast<std::ptrdiff_t>(first),
                    prompt.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (first != 0) s.parent = 1'000 + first - 1;
    return s.as_array();
  };
  EXPECT_EQ(engine.apply(pages(0, 10)), KvUse::apply);
  EXPECT_EQ(engine.held(prompt), 2u);
  EXPECT_EQ(engine.apply(pages(10, 1)), KvUse::partial_block);
  EXPECT_EQ(engine.apply(pages(11, 7)), KvUse::apply);  // 18 tokens: 12..15 and two more
  EXPECT_EQ(engine.result->events[0].ids.size(), 2u);
  EXPECT_EQ(engine.result->events[0].parent, EngineHash{1'007});
  EXPECT_EQ(engine.held(prompt), 4u);
  EXPECT_EQ(engine.apply(pages(30, 4)), KvUse::unaligned);
  EXPECT_EQ(engine.apply(pages(18, 22)), KvUse::apply);
  EXPECT_EQ(engine.held(prompt), 10u);
  EXPECT_EQ(engine.decoder.counters().blocks_stored, 10u);
}

TEST(KvReblock, BranchesBeginAtAnyPage) {
  Joined engine(2, 8);
  auto prompt = count_from(1, 24);
  Stored root{.ids = count_from(100, 12), .tokens = prompt, .size = 2};
  EXPECT_EQ(engine.apply(root.as_map()), KvUse::apply);
  // Another prompt with the first 10 tokens, so that it leaves the first one inside its second block.
  Stored branch{.ids = count_from(200, 4), .parent = 104, .tokens = count_from(500, 8), .size = 2};
  EXPECT_EQ(engine.apply(branch.as_map()), KvUse::apply);
  ASSERT_EQ(engine.result->events[0].ids.size(), 1u);
  EXPECT_EQ(engine.result->events[0].ids[0], EngineHash{202});
  EXPECT_EQ(engine.result->events[0].parent, EngineHash{103});
  test::TokenList other(prompt.begin(), prompt.begin() + 10);
  for (const auto t : count_from(500, 8)) other.push_back(t);
  EXPECT_EQ(engine.held(prompt), 3u);
  EXPECT_EQ(engine.held(other), 2u);
  EXPECT_EQ(engine.apply(test::removed({203, 202})), KvUse::apply);
  EXPECT_EQ(engine.held(other), 1u);
  EXPECT_EQ(engine.apply(test::removed({201, 200})), KvUse::nothing);
  EXPECT_EQ(engine.held(prompt), 3u);
}

TEST(KvReblock, ABranchBeforeTheFirstBorderBeginsThePrompt) {
  Joined engine(1);
  EXPECT_EQ(engine.apply(Stored{.ids = {1, 2, 3}, .tokens = {11, 12, 13}, .size = 1}.as_array()), KvUse::partial_block);
  EXPECT_EQ(engine.apply(Stored{.ids = {9, 10}, .parent = 3, .tokens = {14, 15}, .size = 1}.as_array()), KvUse::apply);
  EXPECT_TRUE(engine.result->events[0].at_root());
  EXPECT_EQ(engine.held({11, 12, 13, 14}), 1u);
}

TEST(KvReblock, AdaptersSaltsAndImagesStaySeparate) {
  Joined engine(2);
  Stored s{.ids = {1, 2, 3, 4}, .tokens = count_from(1, 8), .size = 2, .lora_name = "a"};
  s.salt = "s";
  EXPECT_EQ(engine.apply(s.as_map()), KvUse::apply);
  EXPECT_EQ(engine.held(s.tokens), 0u);
  EXPECT_EQ(engine.held(s.tokens, {kDynamoHashSeed, "a", "s", {}, false}), 2u);

  Joined images(2);
  const std::string image(64, 'a');
  Stored with{.ids = {1, 2, 3, 4}, .tokens = count_from(1, 8), .size = 2};
  with.extra_keys = test::Pack().array(4).nil().nil().array(1).text(image).array(1).array(2).text(image).i(-2).str();
  const KvEvent& e = images.take(with.as_array());
  ASSERT_EQ(e.blocks.size(), 2u);
  const std::uint64_t object = 0xaaaa'aaaa'aaaa'aaaa;
  const std::span<const std::uint64_t> one(&object, 1);
  const std::vector<std::span<const std::uint64_t>> objects = {{}, one};
  std::vector<BlockHash> expected(2);
  hash_multimodal_blocks(test::narrow(with.tokens), 4, kDynamoHashSeed, objects, false, expected);
  EXPECT_TRUE(std::equal(e.blocks.begin(), e.blocks.end(), expected.begin()));  // as blocks of 4 would have been hashed
}

TEST(KvReblock, EaglePagesKnowTheTokenBehindThem) {
  Joined engine(2);
  const auto prompt = count_from(1, 13);
  Stored first{.ids = {1, 2, 3}, .tokens = count_from(1, 7), .size = 2, .pairs = true};
  Stored next{.ids = {4, 5, 6}, .parent = 3, .tokens = count_from(7, 7), .size = 2, .pairs = true};
  std::vector<BlockHash> expected(3);
  ASSERT_EQ(hash_eagle_blocks(test::narrow(prompt), 4, kDynamoHashSeed, expected), 3u);
  const KvEvent& a = engine.take(first.as_array());
  ASSERT_EQ(a.blocks.size(), 1u);
  EXPECT_EQ(a.blocks[0], expected[0]);
  const KvEvent& b = engine.take(next.as_array());
  ASSERT_EQ(b.blocks.size(), 2u);
  EXPECT_EQ(b.blocks[0], expected[1]);
  EXPECT_EQ(b.blocks[1], expected[2]);
}

TEST(KvReblock, ClearingAndRestartingForgetThePages) {
  Joined engine(1);
  const Stored root{.ids = {1, 2}, .tokens = {1, 2}, .size = 1};
  const std::string child = Stored{.ids = {3, 4}, .parent = 2, .tokens = {3, 4}, .size = 1}.as_array();
  engine.apply(root.as_array());
  engine.apply(test::cleared());
  EXPECT_EQ(engine.apply(child), KvUse::unaligned);
  engine.apply(root.as_array());
  engine.decoder.reset();
  EXPECT_EQ(engine.apply(child), KvUse::unaligned);
  engine.apply(root.as_array());
  EXPECT_EQ(engine.apply(child), KvUse::apply);
}

// An engine that caches whole prompts in pages, evicts leaves, and says so; the naive model knows its prompts as strings of tokens.
class PagedEngine {
 public:
  explicit PagedEngine(std::size_t page_tokens) : page_(page_tokens) {}
  // What it says when it has cached that prompt: one event for what is new.
  std::string cache(const test::TokenList& prompt) {
    test::TokenList path;
    Stored s{.ids = {}, .tokens = {}, .size = page_};
    for (std::size_t at = 0; at + page_ <= prompt.size(); at += page_) {
      const std::uint64_t parent = path.empty() ? 0 : held_[path];
      path.insert(path.end(), prompt.begin() + static_cast<std::ptrdiff_t>(at),
                  prompt.begin() + static_cast<std::ptrdiff_t>(at + page_));
      if (held_.contains(path)) continue;
      if (s.ids.empty() && parent != 0) s.parent = parent;
      held_[path] = ++last_;
      s.ids.push_back(last_);
      s.tokens.insert(s.tokens.end(), path.end() - static_cast<std::ptrdiff_t>(page_), path.end());
    }
    return s.ids.empty() ? std::string() : last_ % 2 == 0 ? s.as_array() : s.as_map();
  }
  std::string evict_leaf(std::uint64_t choice) {
    if (held_.empty()) return {};
    auto at = std::next(held_.begin(), static_cast<std::ptrdiff_t>(choice % held_.size()));
    // A path's extensions follow it in order.
    for (auto next = std::next(at); next != held_.end() && extends(next->first, at->first); ++next) at = next;
    const std::uint64_t id = at->second;
    held_.erase(at);
    return test::removed({id});
  }
  std::uint32_t blocks_of(const test::TokenList& prompt, std::size_t block) const {
    std::uint32_t count = 0;
    for (std::size_t end = page_; end <= prompt.size(); end += page_) {
      if (!held_.contains(test::TokenList(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(end)))) break;
      if (end % block == 0) ++count;
    }
    return count;
  }
  [[nodiscard]] std::size_t pages() const { return held_.size(); }

 private:
  static bool extends(const test::TokenList& longer, const test::TokenList& path) {
    return longer.size() > path.size() && std::equal(path.begin(), path.end(), longer.begin());
  }
  std::size_t page_;
  std::uint64_t last_ = 0;
  std::map<test::TokenList, std::uint64_t> held_;
};

TEST(KvReblock, TheIndexHoldsTheBlocksThatTheEnginesPagesMakeUp) {
  for (const std::uint32_t page : {1u, 2u, 4u, 8u}) {
    std::mt19937_64 random(page);
    PagedEngine engine(page);
    Joined ours(page, 8);
    for (int step = 0; step < 1'500; ++step) {
      test::TokenList prompt(random() % 40 + page);
      for (auto& t : prompt) t = random() % 8 == 0 ? 2 : 1;  // so that prompts share beginnings of all lengths
      const std::string event = random() % 2 == 0 ? engine.cache(prompt) : engine.evict_leaf(random());
      if (!event.empty()) {
        ASSERT_NE(ours.apply(event), KvUse::unaligned);
      }
      ASSERT_EQ(ours.held(prompt), engine.blocks_of(prompt, 8)) << "page " << page << " step " << step;
    }
    while (engine.pages() != 0) ours.apply(engine.evict_leaf(random()));
    ASSERT_EQ(ours.index.statistics().memberships, 0u);
  }
}

TEST(IdTable, IdsInOneRowCostNoMoreThanABoundAndMixNothingUp) {
  // Ids whose places are 1, 1, 2, 3, 4...: each lies one behind its own, so that taking out the first would move all.
  struct Number {
    std::uint64_t value = 0;
    [[nodiscard]] bool empty() const noexcept { return value == 0; }
  };
  constexpr std::uint64_t kRow = 60'000;
  std::uint64_t inverse = 1;  // of the multiplier, modulo 2^64
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E37'79B9'7F4A'7C15u * inverse;
  const auto id_at = [inverse](std::uint64_t place, std::uint64_t k) {
    return EngineHash{((place << (64 - 17)) + k) * inverse};  // in a table of 2^17
  };
  ingest::IdTable<Number, std::size_t{1} << 16> table;
  Number old;
  for (std::uint64_t i = 0; i < kRow; ++i) table.put(EngineHash{i}, {1}, old);  // it has its full size from here on
  for (std::uint64_t i = 0; i < kRow; ++i) table.erase(EngineHash{i});
  ASSERT_EQ(table.size(), 0u);
  for (std::uint64_t i = 0; i < kRow; ++i) table.put(id_at(std::max<std::uint64_t>(i, 1), i), {i + 1}, old);
  for (std::uint64_t round = 0; round < 20'000; ++round) {  // 1.2 G moves without the bound
    table.erase(id_at(1, round % 2));
    table.put(id_at(1, round % 2), {round % 2 + 1}, old);
  }
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < kRow; ++i) {
    const Number* number = table.find(id_at(std::max<std::uint64_t>(i, 1), i));
    if (number == nullptr) continue;
    ASSERT_EQ(number->value, i + 1);
    ++found;
  }
  EXPECT_GT(found, kRow / 2);
}

TEST(Reblocker, HoldsSoManyPagesAndNoMore) {
  ingest::Reblocker pages;
  pages.set_sizes(16, 4);
  const std::vector<std::uint32_t> tokens(16, 7);
  const std::size_t most = ingest::Reblocker::kMaxTokens / 16;
  for (std::uint64_t id = 1; id <= most + 1'000; ++id) {
    const EngineHash previous{id - 1};
    pages.put({EngineHash{id}, 0, tokens.data()}, id == 1 ? nullptr : &previous,
              static_cast<std::uint32_t>((id - 1) % 4));
  }
  EXPECT_LE(pages.size(), most);
  EXPECT_GT(pages.size(), most - 1'000);
  for (std::uint64_t id = 1; id <= most; ++id) pages.erase(EngineHash{id});
  EXPECT_EQ(pages.size(), 0u);
  pages.put({EngineHash{5}, 0, tokens.data()}, nullptr, 0);  // there is room again
  EXPECT_EQ(pages.size(), 1u);
}

}  // namespace
}  // namespace warmroute
