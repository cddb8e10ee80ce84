// What events mean: which blocks they are, whose, where, and which of them count.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ingest/kv_decoder.hpp"
#include "kv_build.hpp"
#include "kv_case_file.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

using test::batch;
using test::count_from;
using test::Pack;
using test::Stored;

KvEventOptions small_blocks(std::uint32_t size = 4) {
  KvEventOptions options;
  options.block_size = size;
  return options;
}

std::vector<std::uint64_t> u64(std::span<const BlockHash> blocks) {
  std::vector<std::uint64_t> out;
  for (const BlockHash b : blocks) out.push_back(to_u64(b));
  return out;
}
std::vector<BlockHash> hashes_of(const test::TokenList& tokens, std::uint32_t size, HashSpace space = {}) {
  std::vector<BlockHash> out(tokens.size() / size);
  hash_token_blocks(test::narrow(tokens), size, block_seed(space), out);
  return out;
}

// Decodes events given one after another, each as a payload of its own.
struct Source {
  KvEventDecoder decoder;
  KvEventOptions options = small_blocks();
  std::string payload;

  const KvEvent& take(const std::string& event) {
    payload = batch({event});
    result = decoder.decode(payload, options);
    EXPECT_TRUE(result.ok() && result->events.size() == 1) << kv_fault_name(decoder.fault());
    static const KvEvent kNone;
    return result.ok() && !result->events.empty() ? result->events[0] : kNone;
  }
  KvFault refused(const std::string& event) {
    payload = batch({event});
    result = decoder.decode(payload, options);
    return result.ok() && result->rejected.size() == 1 ? result->rejected[0].fault : KvFault::none;
  }
  std::vector<std::uint64_t> blocks(const std::string& event) { return u64(take(event).blocks); }
  Result<KvBatch> result = KvBatch{};
};

TEST(KvEvents, BlocksAreHashedAsDynamoHashesThem) {
  Source source;
  const std::vector<std::uint64_t> expected = {14643705804678351452u, 16777012769546811212u, 483935686894639516u};
  const Stored plain{.ids = {11, 12, 13}, .tokens = count_from(1, 12)};
  EXPECT_EQ(source.blocks(plain.as_array()), expected);
  EXPECT_EQ(source.blocks(plain.as_map()), expected);
  Stored adapter = plain;
  adapter.lora_name = "my-lora";
  EXPECT_EQ(source.blocks(adapter.as_array())[0], 15671544057904749233u);
  Stored salted = plain;
  salted.salt = "tenant-a";
  EXPECT_EQ(source.blocks(salted.as_map())[0], 5738685477468498325u);
  Stored eagle{.ids = {11, 12}, .tokens = count_from(1, 9), .pairs = true};
  EXPECT_EQ(source.blocks(eagle.as_map()), (std::vector<std::uint64_t>{1914873892905420881u, 1929047464662796003u}));
  Stored image = plain;
  image.extra_keys = Pack().array(3).array(1).text("00000000deadbeef" + std::string(48, '7')).nil().nil().str();
  const auto hashes = source.blocks(image.as_array());
  EXPECT_EQ(hashes, (std::vector<std::uint64_t>{15207512089340001072u, expected[1], expected[2]}));
}

TEST(KvEvents, ADeploymentsSeedAndItsTenantAreInTheHashes) {
  Source source;
  source.options.hash_seed = 7;
  source.options.isolation_key = "tenant-1";
  const Stored event{.ids = {1, 2}, .tokens = count_from(5, 8), .lora_name = "a"};
  EXPECT_EQ(source.blocks(event.as_array()), u64(hashes_of(event.tokens, 4, {7, "a", {}, "tenant-1", false})));
  source.options.hash = false;
  EXPECT_TRUE(source.take(event.as_array()).blocks.empty());
  EXPECT_EQ(source.take(event.as_array()).token_ids.size(), 8u);
}

TEST(KvEvents, TheOrderOfKeysDoesNotMatter) {
  Source source;
  const Stored event{
      .ids = {1, 2}, .parent = 9, .tokens = count_from(300, 8), .lora_name = "a", .group = 0, .salt = "s"};
  const auto expected = source.blocks(event.as_map());
  for (std::size_t turn = 1; turn < 12; ++turn) {
    EXPECT_EQ(source.blocks(event.as_map(turn)), expected);
    EXPECT_EQ(source.result->events[0].parent, EngineHash{9});
  }
}

TEST(KvEvents, OfAKeyThatComesTwiceTheLastCounts) {
  Source source;
  Pack p;
  p.map(10).text("medium").text("CPU").text("parent_block_hash").u(5).text("type").text("BlockStored");
  p.text("block_hashes").list(test::Ids{1, 2, 3}).text("token_ids").text("x").text("block_size").u(4);
  p.text("token_ids").list(count_from(1, 4)).text("block_hashes").list(test::Ids{7}).text("medium").nil();
  p.text("parent_block_hash").nil();
  const KvEvent& e = source.take(p.str());
  EXPECT_EQ(e.ids.size(), 1u);
  EXPECT_EQ(e.ids[0], EngineHash{7});
  EXPECT_TRUE(e.at_root() && e.medium.empty() && e.tier == Tier::device);
  EXPECT_EQ(u64(e.blocks), u64(hashes_of(count_from(1, 4), 4)));
}

TEST(KvEvents, FieldsThatATypeDoesNotHaveMayBeAnything) {
  Source source;
  Pack p;
  p.map(4).text("type").text("BlockRemoved").text("token_ids").u(5).text("block_hashes").list(test::Ids{1});
  p.text("lora_name").array(0);
  EXPECT_EQ(source.take(p.str()).ids.size(), 1u);
  EXPECT_EQ(source.take(Pack().map(2).text("block_hashes").u(1).text("type").text("AllBlocksCleared").str()).type,
            KvEventType::cleared);
}

TEST(KvEvents, SaltedArraysOfSglangHaveAMapWhereOthersHaveTheAdapter) {
  Source source;
  Pack p;
  p.array(8).text("BlockStored").list(test::Ids{1}).nil().list(count_from(1, 4)).u(4).nil().text("GPU");
  p.map(1).text("cache_salt").text("tenant-a");
  const KvEvent& e = source.take(p.str());
  EXPECT_EQ(e.salt, "tenant-a");
  EXPECT_EQ(e.cache_salt, "tenant-a");
  EXPECT_TRUE(e.lora_name.empty() && e.adapter.empty());
  EXPECT_EQ(to_u64(e.blocks[0]), 5738685477468498325u);
}

TEST(KvEvents, TaggedAndUntaggedExtraKeysSeparateAlike) {
  const Stored plain{.ids = {1, 2}, .tokens = count_from(1, 8)};
  const auto with = [&plain](const std::string& first, const std::string& lora_name = {}) {
    Stored s = plain;
    s.lora_name = lora_name;
    s.extra_keys = Pack().array(2).raw(first).nil().str();
    return s.as_array();
  };
  const auto salted = u64(hashes_of(plain.tokens, 4, {kDynamoHashSeed, {}, "s", {}, false}));
  const auto adapted = u64(hashes_of(plain.tokens, 4, {kDynamoHashSeed, "a", {}, {}, false}));
  EXPECT_EQ(Source().blocks(with(Pack().array(1).text("s").str())), salted);
  EXPECT_EQ(Source().blocks(with(Pack().array(1).array(2).text("cache_salt").text("s").str())), salted);
  EXPECT_EQ(Source().blocks(with(Pack().array(1).text("a").str(), "a")), adapted);
  EXPECT_EQ(Source().blocks(with(Pack().array(1).array(3).text("lora").text("a").text("/path").str(), "a")), adapted);
  EXPECT_EQ(Source().blocks(with(Pack().array(1).array(3).text("lora").text("a").text("/path").str())), adapted);

  const std::string image(64, 'e');
  const auto bare = Source().blocks(with(Pack().array(1).text(image).str()));
  EXPECT_EQ(Source().blocks(with(Pack().array(1).array(2).text(image).i(-11).str())), bare);
  EXPECT_EQ(Source().blocks(with(Pack().array(1).array(3).text("mm").text(image).i(-11).str())), bare);
  EXPECT_NE(bare[0], u64(hashes_of(plain.tokens, 4))[0]);
  EXPECT_EQ(bare[1], u64(hashes_of(plain.tokens, 4))[1]);
}

TEST(KvEvents, ASaltThatIsSpelledAsTheAdapterIsStillASalt) {
  Stored s{.ids = {1}, .tokens = count_from(1, 4), .lora_name = "a"};
  s.extra_keys = Pack().array(1).array(2).text("a").text("a").str();
  EXPECT_EQ(Source().blocks(s.as_array()), u64(hashes_of(s.tokens, 4, {kDynamoHashSeed, "a", "a", {}, false})));
  s.extra_keys = Pack().array(1).array(1).text("a").str();
  EXPECT_EQ(Source().blocks(s.as_array()), u64(hashes_of(s.tokens, 4, {kDynamoHashSeed, "a", {}, {}, false})));
}

TEST(KvEvents, WhateverIsInExtraKeysSeparates) {
  // Each of these is another block than all the others, though their tokens are the same (image placeholders, for instance).
  const std::vector<std::string> keys = {
      Pack().nil().str(),
      Pack().array(1).text(std::string(64, 'a')).str(),
      Pack().array(1).text(std::string(64, 'b')).str(),
      Pack().array(2).text(std::string(64, 'b')).text(std::string(64, 'a')).str(),
      Pack().array(1).text("image-1").str(),
      Pack().array(1).bin(std::string(32, 'd')).str(),
      Pack().array(1).bin(std::string(32, 'e')).str(),
      Pack().array(1).array(2).text("prompt_embeds").bin("x").str(),
      Pack().array(1).array(2).text("cache_salt").text("x").str(),
      Pack().array(1).array(3).text("lora").text("x").text("/p").str(),
      Pack().array(1).array(3).text("mm").text("x").i(0).str(),
      Pack().array(1).u(5).str(),
      Pack().array(1).map(1).text("new").u(5).str(),
      Pack().array(2).text("image-1").text("salt").str(),
  };
  std::set<std::uint64_t> seen;
  for (const std::string& key : keys) {
    Stored s{.ids = {1}, .tokens = count_from(1, 4)};
    s.extra_keys = Pack().array(1).raw(key).str();
    EXPECT_TRUE(seen.insert(Source().blocks(s.as_array())[0]).second) << key;
  }
}

TEST(KvEvents, ImagesInAnyOrderAreTheSameBlock) {
  const std::string a(64, 'a'), b(64, 'b');
  Stored one{.ids = {1}, .tokens = count_from(1, 4)}, two = one;
  one.extra_keys = Pack().array(1).array(2).text(a).text(b).str();
  two.extra_keys = Pack().array(1).array(2).text(b).text(a).str();
  EXPECT_EQ(Source().blocks(one.as_array()), Source().blocks(two.as_array()));
}

TEST(KvEvents, LaterBlocksInheritTheSaltThatOnlyTheFirstNames) {
  Source source;
  const auto salted = [](const test::TokenList& t) {
    return u64(hashes_of(t, 4, {kDynamoHashSeed, {}, "s", {}, false}));
  };
  Stored root{.ids = {1, 2}, .tokens = count_from(1, 8)};
  root.extra_keys = Pack().array(2).array(1).text("s").nil().str();
  EXPECT_EQ(source.blocks(root.as_array()), salted(root.tokens));
  const Stored child{.ids = {3}, .parent = 2, .tokens = count_from(9, 4)},
      grandchild{.ids = {4}, .parent = 3, .tokens = count_from(20, 4)};
  const Stored branch{.ids = {5}, .parent = 1, .tokens = count_from(30, 4)},
      other{.ids = {6}, .parent = 77, .tokens = count_from(9, 4)};
  EXPECT_EQ(source.blocks(child.as_array()), salted(child.tokens));
  EXPECT_EQ(source.blocks(grandchild.as_map()), salted(grandchild.tokens));
  EXPECT_EQ(source.blocks(branch.as_array()), salted(branch.tokens));
  EXPECT_EQ(source.blocks(other.as_array()), u64(hashes_of(other.tokens, 4)));
  source.take(test::cleared());
  EXPECT_EQ(source.blocks(child.as_array()), u64(hashes_of(child.tokens, 4)));
  source.take(root.as_array());
  source.take(test::removed({2}));
  EXPECT_EQ(source.blocks(child.as_array()), u64(hashes_of(child.tokens, 4)));
  EXPECT_EQ(source.blocks(branch.as_array()), salted(branch.tokens));
  source.decoder.reset();
  EXPECT_EQ(source.blocks(branch.as_array()), u64(hashes_of(branch.tokens, 4)));
}

TEST(KvEvents, OnlyGroupsThatHoldWholePrefixesCount) {
  Source source;
  const auto use = [&source](std::optional<std::uint64_t> group, const std::string& kind) {
    return source.take(Stored{.ids = {1}, .tokens = count_from(1, 4), .group = group, .kind = kind}.as_array()).use;
  };
  for (const char* kind : {"full_attention", "mla_attention", "sink_full_attention"}) {
    EXPECT_EQ(use(3, kind), KvUse::apply) << kind;
  }
  for (const char* kind : {"sliding_window", "sliding_window_mla", "mamba", "chunked_local_attention", "unknown",
                           "encoder_only_attention", "cross_attention", "holographic_attention"}) {
    EXPECT_EQ(use(4, kind), KvUse::other_group) << kind;
  }
  EXPECT_EQ(use({}, {}), KvUse::apply);
  EXPECT_EQ(use(0, {}), KvUse::apply);
  EXPECT_EQ(use(1, {}), KvUse::other_group);
  EXPECT_EQ(use(1'000, {}), KvUse::other_group);
}

TEST(KvEvents, RemovalsNameTheGroupAndItsKindIsRemembered) {
  Source source;
  source.take(Stored{.ids = {1}, .tokens = count_from(1, 4), .group = 0, .kind = "mamba"}.as_array());
  source.take(Stored{.ids = {1}, .tokens = count_from(1, 4), .group = 1, .kind = "full_attention"}.as_map());
  EXPECT_EQ(source.take(test::removed({1}, "GPU", 0)).use, KvUse::other_group);
  EXPECT_EQ(source.take(test::removed({1}, "GPU", 1)).use, KvUse::apply);
  source.decoder.reset();
  EXPECT_EQ(source.take(test::removed({1}, "GPU", 0)).use, KvUse::apply);
  EXPECT_EQ(source.take(test::removed({1}, "GPU", 1)).use, KvUse::other_group);
}

TEST(KvEvents, AMediumIsATierOrASharedStoreOrUnknown) {
  Source source;
  struct Row {
    const char* medium;
    const char* locality;
    KvUse use;
    Tier tier;
  };
  for (const Row& row :
       {Row{"", "", KvUse::apply, Tier::device}, Row{"GPU", "", KvUse::apply, Tier::device},
        Row{"CPU", "LOCAL", KvUse::apply, Tier::host}, Row{"CPU_PINNED", "", KvUse::apply, Tier::host},
        Row{"DISK", "", KvUse::apply, Tier::disk}, Row{"FS", "LOCAL", KvUse::apply, Tier::disk},
        Row{"FS", "REMOTE", KvUse::apply, Tier::shared}, Row{"OBJ", "", KvUse::apply, Tier::shared},
        Row{"STORAGE", "REMOTE", KvUse::apply, Tier::shared}, Row{"STORAGE", "LOCAL", KvUse::apply, Tier::disk},
        Row{"EXTERNAL", "", KvUse::apply, Tier::shared}, Row{"cpu", "", KvUse::apply, Tier::shared},
        Row{"TAPE", "", KvUse::unknown_medium, Tier::device}}) {
    Stored s{.ids = {1}, .tokens = count_from(1, 4), .medium = row.medium};
    s.locality = row.locality;
    const KvEvent& e = source.take(s.as_map());
    EXPECT_EQ(e.use, row.use) << row.medium << ' ' << row.locality;
    EXPECT_EQ(e.tier, row.tier) << row.medium << ' ' << row.locality;
  }
  EXPECT_EQ(source.decoder.counters().events[static_cast<std::size_t>(KvUse::unknown_medium)], 1u);
}

TEST(KvEvents, AnAdapterWithoutANameIsNotTheBaseModel) {
  Source source;
  Stored s{.ids = {1}, .tokens = count_from(1, 4), .lora_id = 3};
  EXPECT_EQ(source.take(s.as_array()).use, KvUse::unnamed_adapter);
  s.lora_name = "a";
  EXPECT_EQ(source.take(s.as_array()).use, KvUse::apply);
}

TEST(KvEvents, AnotherBlockSizeIsRefusedAndAShortLastPageIsLeftOut) {
  Source source;
  const auto use = [&source](std::size_t blocks, std::uint64_t size) {
    return source
        .take(Stored{.ids = count_from(1, blocks), .tokens = count_from(1, blocks * size), .size = size}.as_array())
        .use;
  };
  EXPECT_EQ(use(1, 3), KvUse::block_size);  // no whole block was seen yet: perhaps they are all like this
  EXPECT_EQ(use(1, 8), KvUse::block_size);
  EXPECT_EQ(use(2, 2), KvUse::block_size);
  EXPECT_EQ(use(1, 4), KvUse::apply);
  EXPECT_EQ(use(1, 3), KvUse::partial_block);
  EXPECT_EQ(use(2, 2), KvUse::block_size);
  source.options.engine_block_size = 6;
  EXPECT_EQ(use(1, 6), KvUse::block_size);  // neither a multiple nor a divisor
  source.options.engine_block_size = 3;
  EXPECT_EQ(use(1, 3), KvUse::block_size);
  EXPECT_EQ(source.decoder.counters().events[static_cast<std::size_t>(KvUse::block_size)], 6u);
}

TEST(KvEvents, LargerEngineBlocksAreCutIntoOurs) {
  Source source;
  source.options = small_blocks(4);
  source.options.engine_block_size = 8;
  const Stored root{.ids = {101, 102}, .tokens = count_from(1, 16), .size = 8};
  const KvEvent& e = source.take(root.as_array());
  ASSERT_EQ(e.use, KvUse::apply);
  EXPECT_EQ(u64(e.blocks), u64(hashes_of(root.tokens, 4)));
  ASSERT_EQ(e.ids.size(), 4u);
  EXPECT_EQ(e.ids[1], EngineHash{101});
  EXPECT_EQ(e.ids[3], EngineHash{102});
  const std::vector<EngineHash> names(e.ids.begin(), e.ids.end());
  EXPECT_EQ(std::set<EngineHash>(names.begin(), names.end()).size(), 4u);

  PrefixIndex index;
  const ReplicaId replica{0, 1};
  ASSERT_TRUE(index.store_event(replica, Tier::device, nullptr, e.ids, e.blocks).ok());
  const Stored child{.ids = {103}, .parent = 102, .tokens = count_from(17, 8), .size = 8};
  const KvEvent& c = source.take(child.as_map());
  ASSERT_TRUE(index.store_event(replica, Tier::device, &*c.parent, c.ids, c.blocks).ok());
  PrefixMatch match;
  index.match(hashes_of(count_from(1, 24), 4), match);
  EXPECT_EQ(match.device()[0], 6u);
  EXPECT_EQ(index.remove_event(replica, Tier::device, source.take(test::removed({102})).ids), 2u);
  index.match(hashes_of(count_from(1, 24), 4), match);
  EXPECT_EQ(match.device()[0], 2u);
  EXPECT_EQ(index.remove_event(replica, Tier::device, source.take(test::removed({103, 101})).ids), 4u);
  EXPECT_EQ(index.statistics().memberships, 0u);
}

TEST(KvEvents, WideTokenIdsAreKeptWhereWantedAndMatchNothingElse) {
  Source source;
  test::TokenList tokens = count_from(1, 12);
  tokens[6] = 0x4000'0000'001e'847f;
  const Stored s{.ids = {1, 2, 3}, .tokens = tokens};
  EXPECT_EQ(source.refused(s.as_array()), KvFault::token_range);
  source.options.wide_tokens = true;
  const KvEvent& e = source.take(s.as_map());
  EXPECT_TRUE(e.wide_tokens && e.token_ids.empty());
  const auto narrow = u64(hashes_of(count_from(1, 12), 4));
  ASSERT_EQ(e.blocks.size(), 3u);
  EXPECT_EQ(to_u64(e.blocks[0]), narrow[0]);
  EXPECT_EQ(to_u64(e.blocks[2]), narrow[2]);
  std::string bytes(1, '\xff');
  for (std::size_t t = 4; t < 8; ++t) {
    for (int b = 0; b < 8; ++b) bytes.push_back(static_cast<char>(tokens[t] >> (8 * b) & 0xff));
  }
  EXPECT_EQ(to_u64(e.blocks[1]), XXH3_64bits_withSeed(bytes.data(), bytes.size(), kDynamoHashSeed));

  Stored with_keys = s;
  with_keys.extra_keys = Pack().array(3).nil().nil().array(1).text("image").str();
  EXPECT_EQ(source.refused(with_keys.as_array()), KvFault::token_range);

  Stored pairs{.ids = {1, 2}, .tokens = count_from(1, 9), .pairs = true};
  const auto eagle = source.blocks(pairs.as_array());
  pairs.tokens[8] = std::uint64_t{1} << 33;  // in the second window only
  EXPECT_EQ(source.blocks(pairs.as_array())[0], eagle[0]);
  EXPECT_NE(source.blocks(pairs.as_array())[1], eagle[1]);
}

TEST(KvEvents, TheHashOfNothingIsTheRoot) {
  Source source;
  const KvEvent& e =
      source.take(Stored{.ids = {1}, .parent = 5'740'354'900'026'072'187, .tokens = count_from(1, 4)}.as_array());
  EXPECT_TRUE(e.parent && e.at_root());
  EXPECT_FALSE(e.stored_blocks().parent);
}

// Ids that all fall into one place of a table of that size.
test::Ids colliding(std::size_t count) {
  std::uint64_t inverse = 1;  // of the multiplier, modulo 2^64
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E37'79B9'7F4A'7C15u * inverse;
  test::Ids ids;
  for (std::uint64_t k = 1; k <= count; ++k) ids.push_back(k * inverse);
  return ids;
}

TEST(KvEvents, ABlockThatComesTwiceIsFoundInChainsOfAnyLength) {
  Source source;
  for (const std::size_t count : {2u, 7u, 8u, 9u, 64u, 300u, 5'000u}) {
    for (const bool collide : {false, true}) {
      Stored s{.ids = collide ? colliding(count) : count_from(1, count), .tokens = count_from(1, 4 * count)};
      EXPECT_EQ(source.take(s.as_array()).ids.size(), count);
      s.parent = s.ids[count / 2];
      EXPECT_EQ(source.refused(s.as_array()), KvFault::self_parent);
      s.parent.reset();
      s.ids[count - 1] = s.ids[(count - 1) / 2];
      EXPECT_EQ(source.refused(s.as_array()), KvFault::duplicate_hash) << count;
    }
  }
}

TEST(KvEvents, ARejectedEventLeavesItsNeighboursWhole) {
  KvEventDecoder decoder;
  const Stored good{.ids = {1, 2}, .tokens = count_from(1, 8)}, bad{.ids = {5, 5}, .tokens = count_from(50, 8)};
  const Stored next{.ids = {3}, .parent = 2, .tokens = count_from(9, 4)};
  const std::string payload = batch({good.as_array(), bad.as_array(), next.as_map(), "\x01", test::removed({1, 2, 3})});
  const auto result = decoder.decode(payload, small_blocks());
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->events.size(), 3u);
  EXPECT_EQ(u64(result->events[0].blocks), u64(hashes_of(good.tokens, 4)));
  EXPECT_EQ(u64(result->events[1].blocks), u64(hashes_of(next.tokens, 4)));
  EXPECT_EQ(result->events[2].ids.size(), 3u);
  EXPECT_EQ(result->events[2].index, 4u);
  ASSERT_EQ(result->rejected.size(), 2u);
  EXPECT_EQ(result->rejected[1].index, 3u);
  EXPECT_EQ(payload.substr(result->rejected[1].offset, 1), "\x01");
  EXPECT_EQ(decoder.counters().blocks_stored, 3u);
  EXPECT_EQ(decoder.counters().blocks_removed, 3u);
}

TEST(KvEvents, TheRouterTakesThemAsTheyAre) {
  Policy policy;
  Router router;
  ASSERT_TRUE(router.set_policy(policy).ok());
  const ReplicaId replica = *router.add_replica({.name = "gpu-0"}, Nanos{0});
  const Stored root{.ids = {1, 2}, .tokens = count_from(1, 32), .size = 16};
  const Stored child{.ids = {3}, .parent = 2, .tokens = count_from(33, 16), .size = 16};
  const std::string payload = batch({root.as_array(), child.as_map(), test::removed({3})});
  KvEventDecoder decoder;
  const auto events = decoder.decode(payload, kv_event_options(policy));
  ASSERT_TRUE(events.ok() && events->events.size() == 3);
  const auto cached = [&] {
    const auto prompt = test::narrow(count_from(1, 60));
    Request request;
    request.token_ids = prompt;
    return router.peek(request, Nanos{1}).total_cached().value;
  };
  EXPECT_TRUE(router.blocks_stored(replica, events->events[0].stored_blocks(), Nanos{1}).ok());
  EXPECT_TRUE(router.blocks_stored(replica, events->events[1].stored_blocks(), Nanos{1}).ok());
  EXPECT_EQ(cached(), 48);
  EXPECT_EQ(*router.blocks_removed(replica, events->events[2].tier, events->events[2].ids, Nanos{1}), 1u);
  EXPECT_EQ(cached(), 32);
}

TEST(KvEvents, EveryFaultHasItsName) {
  std::set<std::string_view> names;
  for (std::size_t f = 0; f < kKvFaultCount; ++f) names.insert(kv_fault_name(static_cast<KvFault>(f)));
  EXPECT_EQ(names.size(), kKvFaultCount);
  EXPECT_EQ(kv_fault_name(KvFault::duplicate_hash), "duplicate_hash");
  EXPECT_EQ(kv_fault_name(static_cast<KvFault>(200)), "unknown");
}

// Random batches in either form, decoded, beside what they were made of.
TEST(KvEvents, RandomBatchesComeBackAsTheyWereSent) {
  std::mt19937_64 random(11);
  KvEventDecoder decoder;
  for (int round = 0; round < 400; ++round) {
    std::vector<Stored> sent(random() % 6);
    std::vector<std::string> wire;
    for (Stored& s : sent) {
      s.size = std::uint64_t{1} << random() % 6;
      s.ids.resize(random() % 20 + 1);
      for (auto& id : s.ids) id = random() >> random() % 40;
      std::sort(s.ids.begin(), s.ids.end());
      s.ids.erase(std::unique(s.ids.begin(), s.ids.end()), s.ids.end());
      if (random() % 2 == 0) s.parent = s.ids.back() + 1;
      s.pairs = random() % 4 == 0;
      s.tokens.resize(s.ids.size() * s.size + (s.pairs ? 1 : 0));
      for (auto& t : s.tokens) t = static_cast<std::uint32_t>(random()) >> random() % 32;
      if (random() % 3 == 0) s.lora_name = "adapter-" + std::to_string(random() % 5);
      if (random() % 3 == 0) s.group = 0;
      wire.push_back(random() % 2 == 0 ? s.as_array() : s.as_map(random() % 12));
    }
    const std::uint32_t size = 1u << random() % 6;
    const std::string payload = batch(wire);
    const auto result = decoder.decode(payload, small_blocks(size));
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->events.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const KvEvent& e = result->events[i];
      const Stored& s = sent[i];
      const auto tokens = test::narrow(s.tokens);
      ASSERT_TRUE(std::equal(e.token_ids.begin(), e.token_ids.end(), tokens.begin(), tokens.end()));
      ASSERT_TRUE(std::equal(e.ids.begin(), e.ids.end(), s.ids.begin(), s.ids.end(),
                             [](EngineHash a, std::uint64_t b) { return static_cast<std::uint64_t>(a) == b; }));
      ASSERT_EQ(e.parent.has_value(), s.parent.has_value());
      ASSERT_EQ(e.adapter, s.lora_name);
      if (s.size != size) continue;
      ASSERT_EQ(e.use, KvUse::apply);
      std::vector<BlockHash> blocks(s.ids.size());
      const std::uint64_t seed = block_seed({kDynamoHashSeed, s.lora_name, {}, {}, false});
      s.pairs ? hash_eagle_blocks(tokens, size, seed, blocks) : hash_token_blocks(tokens, size, seed, blocks);
      ASSERT_EQ(u64(e.blocks), u64(blocks));
    }
  }
}

TEST(SaltTrail, HoldsWhatAMapHolds) {
  std::mt19937_64 random(5);
  ingest::SaltTrail trail;
  std::map<std::uint64_t, std::uint64_t> naive;
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t id = random() % 3'000 * 0x9E37'79B9'7F4A'7C15u;
    const EngineHash name{id};
    switch (random() % 3) {
      case 0: trail.put({&name, 1}, naive[id] = random() % 100 + 1); break;
      case 1:
        trail.erase({&name, 1});
        naive.erase(id);
        break;
      default: ASSERT_EQ(trail.find(name), naive.contains(id) ? naive[id] : 0);
    }
    ASSERT_EQ(trail.size(), naive.size());
  }
  trail.clear();
  EXPECT_TRUE(trail.empty());
  for (const auto& [id, salt] : naive) EXPECT_EQ(trail.find(EngineHash{id}), 0u);
}

TEST(SaltTrail, ForgetsRatherThanGrowsWithoutEnd) {
  ingest::SaltTrail trail;
  for (std::uint64_t id = 1; id <= ingest::SaltTrail::kMaxBlocks + 100; ++id) {
    const EngineHash name{id};
    trail.put({&name, 1}, 7);
  }
  EXPECT_EQ(trail.size(), ingest::SaltTrail::kMaxBlocks);
}

}  // namespace
}  // namespace warmroute
