// An export is believed whole or not at all, and tells nothing to those without the key.
#include "warmroute/route/cache_export.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "route/cache_body.hpp"
#include "route/warm_traffic.hpp"

namespace warmroute {
namespace {

using Key = std::array<std::uint8_t, 32>;
constexpr Key kKey{1, 2, 3, 4, 5};
constexpr Nanos kNoon = seconds(43'200);

struct Warm {
  explicit Warm(std::uint64_t seed = 1, int requests = 300) : traffic(seed) {
    test::add_three(router);
    end = test::drive(router, traffic, requests, Nanos{0});
  }
  std::string bytes() {
    auto exported = export_caches(router, kKey, end);
    EXPECT_TRUE(exported.ok());
    return *exported;
  }
  Router router;
  test::WarmTraffic traffic;
  Nanos end{};
};

std::uint64_t believed(const Router& router) {
  std::uint64_t sum = 0;
  for (const auto& replica : router.statistics().replicas) sum += replica.believed_blocks;
  return sum;
}

// Of every block, newest run first. Runs themselves may be cut differently.
std::vector<std::int64_t> ages(const CachedTree& tree, Nanos now) {
  std::vector<std::int64_t> out;
  for (const CachedRun& run : tree.runs) out.insert(out.end(), run.count, (now - run.last_use).value);
  return out;
}

TEST(CacheExport, AFreshRouterBelievesTheSame) {
  Warm old;
  Router fresh;
  test::add_three(fresh);
  const auto report = import_caches(fresh, old.bytes(), kKey, kNoon);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->replicas_restored, 3u);
  EXPECT_EQ(report->replicas_unknown, 0u);
  EXPECT_EQ(report->blocks_restored, believed(old.router));
  EXPECT_EQ(report->blocks_offered, believed(old.router));
  for (const auto& row : old.router.replicas()) {
    const auto a = old.router.cached(row.id, old.end), b = fresh.cached(row.id, kNoon);
    EXPECT_EQ(test::eviction_order(a->tree), test::eviction_order(b->tree));
    EXPECT_EQ(a->capacity_blocks, b->capacity_blocks);
    EXPECT_EQ(a->trust_milli, b->trust_milli);
    EXPECT_EQ(a->bytes_per_token.milli, b->bytes_per_token.milli);
    EXPECT_EQ(a->output_tokens.milli, b->output_tokens.milli);
    EXPECT_EQ(ages(a->tree, old.end), ages(b->tree, kNoon));
  }
  Policy policy;
  policy.reuse = Nanos{0};  // how quickly caches were renewed is not kept: a minute tells it anew
  ASSERT_TRUE(old.router.set_policy(policy));
  ASSERT_TRUE(fresh.set_policy(policy));
  for (int i = 0; i < 200; ++i) {
    const auto path = old.traffic.path();
    Request request;
    request.blocks = path;
    const Decision a = old.router.peek(request, old.end), b = fresh.peek(request, kNoon);
    EXPECT_EQ(a.replica, b.replica);
    EXPECT_EQ(a.total_cached(), b.total_cached());
  }
}

TEST(CacheExport, TwiceTheSameIsImportedOnce) {
  Warm old;
  Router fresh;
  test::add_three(fresh);
  const std::string bytes = old.bytes();
  ASSERT_TRUE(import_caches(fresh, bytes, kKey, kNoon).ok());
  const auto again = import_caches(fresh, bytes, kKey, kNoon);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->blocks_restored, 0u);
  EXPECT_EQ(believed(fresh), believed(old.router));
}

TEST(CacheExport, NothingIsBelievedOfACutExport) {
  Warm old(2, 60);
  const std::string bytes = old.bytes();
  Router fresh;
  test::add_three(fresh);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto report = import_caches(fresh, std::string_view(bytes).substr(0, size), kKey, kNoon);
    ASSERT_EQ(report.code(), Code::malformed) << size;
  }
  EXPECT_EQ(import_caches(fresh, bytes + '\0', kKey, kNoon).code(), Code::malformed);
  EXPECT_EQ(believed(fresh), 0u);
  EXPECT_TRUE(import_caches(fresh, bytes, kKey, kNoon).ok());
}

TEST(CacheExport, NoFlippedBitPasses) {
  Warm old(3, 60);
  const std::string bytes = old.bytes();
  Router fresh;
  test::add_three(fresh);
  for (std::size_t at = 0; at < bytes.size(); at += at < 200 || at + 200 > bytes.size() ? 1 : 7) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    const auto report = import_caches(fresh, changed, kKey, kNoon);
    ASSERT_FALSE(report.ok()) << at;
    const Code want = at < 7    ? Code::malformed
                      : at == 7 ? Code::unsupported
                      : at < 56 ? Code::invalid_argument
                                : Code::malformed;
    ASSERT_EQ(report.code(), want) << at;
    if (at < 8) {
      ASSERT_EQ(report.error().offset, at);
    }
  }
  EXPECT_EQ(believed(fresh), 0u);
}

TEST(CacheExport, AnotherKeyIsToldApart) {
  Warm old;
  Router fresh;
  test::add_three(fresh);
  Key other = kKey;
  other[31] ^= 1;
  const auto report = import_caches(fresh, old.bytes(), other, kNoon);
  ASSERT_EQ(report.code(), Code::invalid_argument);
  EXPECT_NE(report.error().message.find("another key"), std::string::npos);
  EXPECT_EQ(believed(fresh), 0u);
}

TEST(CacheExport, AnotherPolicyIsRefused) {
  Warm old;
  const std::string bytes = old.bytes();
  for (const bool seed : {false, true}) {
    Policy policy;
    if (seed) policy.hash_seed = 99;
    else policy.block_size = 32;
    Router fresh;
    test::add_three(fresh);
    ASSERT_TRUE(fresh.set_policy(policy).ok());
    const auto report = import_caches(fresh, bytes, kKey, kNoon);
    ASSERT_EQ(report.code(), Code::invalid_argument);
    EXPECT_NE(report.error().message.find(seed ? "hash_seed" : "32"), std::string::npos) << report.error().message;
    EXPECT_EQ(believed(fresh), 0u);
  }
}

TEST(CacheExport, UnknownReplicasAreSkippedAndCounted) {
  Warm old;
  Router fresh;
  ASSERT_TRUE(fresh.add_replica({.name = "a", .dp_rank = 1}, Nanos{0}).ok());
  ASSERT_TRUE(fresh.add_replica({.name = "a", .dp_rank = 2}, Nanos{0}).ok());
  ASSERT_TRUE(fresh.add_replica({.name = "b", .pool = "elsewhere"}, Nanos{0}).ok());
  const auto report = import_caches(fresh, old.bytes(), kKey, kNoon);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->replicas_restored, 1u);
  EXPECT_EQ(report->replicas_unknown, 2u);
  EXPECT_EQ(report->blocks_offered, believed(old.router));
  EXPECT_EQ(report->blocks_restored, old.router.statistics().replicas[1].believed_blocks);
  EXPECT_EQ(believed(fresh), report->blocks_restored);
  EXPECT_EQ(fresh.statistics().replicas[0].believed_blocks, report->blocks_restored);
}

TEST(CacheExport, LargerThanAllowedIsRefused) {
  Warm old(1, 20);
  const std::string bytes = old.bytes();
  Router fresh;
  test::add_three(fresh);
  CacheImportOptions options;
  options.max_bytes = bytes.size() - 1;
  EXPECT_EQ(import_caches(fresh, bytes, kKey, kNoon, options).code(), Code::too_large);
  options.max_bytes = bytes.size();
  EXPECT_TRUE(import_caches(fresh, bytes, kKey, kNoon, options).ok());
}

TEST(CacheExport, NoHashAndNoNameIsReadableAndNoTwoAreAlike) {
  Router router;
  const std::string name = "a-rather-telling-name";
  const auto id = *router.add_replica({.name = name}, Nanos{0});
  const std::vector<BlockHash> path{BlockHash{0x1122334455667788}, BlockHash{0x99AABBCCDDEEFF01}};
  const auto empty = export_caches(router, kKey, Nanos{0});
  Request request;
  request.blocks = path;
  router.route(request, Nanos{0});
  const auto one = export_caches(router, kKey, Nanos{0}), two = export_caches(router, kKey, Nanos{0});
  ASSERT_EQ(router.cached(id, Nanos{0})->tree.blocks.size(), 2u);
  EXPECT_EQ(empty->size(), one->size());  // padded: a few blocks more or less do not show
  EXPECT_NE(one->substr(8), two->substr(8));
  EXPECT_EQ(one->find(name), std::string::npos);
  const std::string raw(reinterpret_cast<const char*>(path.data()), 8);
  EXPECT_EQ(one->find(raw), std::string::npos);
  std::array<int, 256> seen{};
  for (const char c : *one) ++seen[static_cast<unsigned char>(c)];
  for (const int n : seen) EXPECT_LT(n, 100);  // 4 KiB of mostly zeros before encryption
}

TEST(CacheExport, CarriesWhatWasLearnedOfTheHardware) {
  Warm old;
  for (int i = 0; i < 200; ++i) {  // each takes 3 ms for 100 tokens: quicker than declared
    Request request;
    request.input_tokens = 100 + i;
    old.end += seconds(1);
    const Decision d = old.router.route(request, old.end);
    old.router.first_token(d.ticket, old.end + milliseconds(3));
    old.router.finish(d.ticket, {request.input_tokens, 0, 100}, old.end + milliseconds(403));
    old.end += milliseconds(403);
  }
  const RouterStatistics before = old.router.statistics();
  const LearnedRates* quick = rates_of(before, before.replicas.at(0));
  ASSERT_NE(quick, nullptr);
  ASSERT_GT(quick->samples, 30u);
  ASSERT_NE(quick->used, quick->declared);
  Router fresh;
  test::add_three(fresh);
  const auto report = import_caches(fresh, old.bytes(), kKey, Nanos{1});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->rates_restored, 3u) << "three kinds of hardware";
  const RouterStatistics after = fresh.statistics();
  for (std::size_t i = 0; i < 3; ++i) {
    const LearnedRates* then = rates_of(before, before.replicas.at(i));
    const LearnedRates* now = rates_of(after, after.replicas.at(i));
    ASSERT_NE(now, nullptr);
    EXPECT_EQ(now->used, then->used);
    EXPECT_EQ(now->samples, then->samples);
    EXPECT_EQ(now->learned, then->learned);
    EXPECT_EQ(after.replicas.at(i).slowness, before.replicas.at(i).slowness);
  }
  EXPECT_EQ(import_caches(fresh, old.bytes(), kKey, Nanos{2})->rates_restored, 0u) << "it has learned by itself";
}

// --- the plain body ------------------------------------------------------------------------------------------------

std::string small_body() {
  ReplicaCache cache;
  cache.capacity_tokens = 1'000;
  cache.capacity_blocks = 60;
  cache.taken_at = Nanos{100};
  cache.tree.runs = {{kNoParentRun, 0, 3, Nanos{90}}, {0, 2, 1, Nanos{90}}, {kNoParentRun, 0, 1, Nanos{10}}};
  for (std::uint64_t b = 1; b <= 5; ++b) cache.tree.blocks.push_back(BlockHash{b * 0x0101010101010101});
  std::string body;
  append_body_header(body, 16, 0xABCD1234, 2);
  append_replica_cache(body, "pool", "one", 0, cache);
  append_replica_cache(body, "pool", "one", 3, {});
  LearnedPool learned;
  learned.kinds.resize(2);
  learned.kinds[1].declared.token_ps = 7;
  learned.kinds[1].samples = 300;
  learned.kinds[1].trusted = true;
  for (std::size_t i = 0; i < LearnedKind::kSums; ++i) {
    learned.kinds[1].sums[i] = (i % 2 == 0 ? -1 : 1) * (std::int64_t{1} << 2 * i);
  }
  learned.replicas = {{"one", 3, 1 << 20}, {"two", 0, 1 << 21}};
  append_pool_count(body, 2);
  append_learned(body, "", {});
  append_learned(body, "pool", learned);
  return body;
}

TEST(CacheBody, ReadsWhatWasWritten) {
  const auto body = read_cache_body(small_body());
  ASSERT_TRUE(body.ok()) << body.error().message;
  EXPECT_EQ(body->block_size, 16u);
  EXPECT_EQ(body->seed_digest, 0xABCD1234u);
  ASSERT_EQ(body->replicas.size(), 2u);
  EXPECT_EQ(body->replicas[0].pool, "pool");
  EXPECT_EQ(body->replicas[0].name, "one");
  EXPECT_EQ(body->replicas[1].dp_rank, 3u);
  const CachedTree& tree = body->replicas[0].cache.tree;
  ASSERT_EQ(tree.runs.size(), 3u);
  EXPECT_EQ(tree.runs[1].parent, 0u);
  EXPECT_EQ(tree.runs[1].parent_end, 2u);
  EXPECT_EQ(tree.runs[0].last_use, Nanos{-10});
  EXPECT_EQ(tree.runs[2].last_use, Nanos{-90});
  EXPECT_EQ(tree.blocks[4], BlockHash{0x0505050505050505});
  EXPECT_TRUE(CachedPaths(tree).valid());
  ASSERT_EQ(body->learned.size(), 2u);
  EXPECT_TRUE(body->learned[0].learned.kinds.empty());
  const LearnedPool& learned = body->learned[1].learned;
  EXPECT_EQ(body->learned[1].pool, "pool");
  ASSERT_EQ(learned.kinds.size(), 2u);
  EXPECT_EQ(learned.kinds[1].declared.token_ps, 7);
  EXPECT_EQ(learned.kinds[1].samples, 300);
  EXPECT_TRUE(learned.kinds[1].trusted);
  EXPECT_EQ(learned.kinds[1].sums[0], -1);
  EXPECT_EQ(learned.kinds[1].sums[23], std::int64_t{1} << 46);
  EXPECT_EQ(learned.kinds[1].sums[24], -(std::int64_t{1} << 48));
  ASSERT_EQ(learned.replicas.size(), 2u);
  EXPECT_EQ(learned.replicas[0].name, "one");
  EXPECT_EQ(learned.replicas[0].dp_rank, 3u);
  EXPECT_EQ(learned.replicas[1].slowness, 1 << 21);
}

TEST(CacheBody, OfTheFirstVersionIsReadWithoutRates) {
  std::string body;
  append_body_header(body, 16, 5, 1);
  append_replica_cache(body, "", "one", 0, {});
  body[0] = 1;
  const auto read = read_cache_body(body);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->replicas.size(), 1u);
  EXPECT_TRUE(read->learned.empty());
}

TEST(CacheBody, EveryCutIsRefusedWithItsPlace) {
  const std::string body = small_body();
  for (std::size_t size = 0; size < body.size(); ++size) {
    const auto cut = read_cache_body(std::string_view(body).substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_LE(cut.error().offset, size);
    EXPECT_FALSE(cut.error().message.empty());
  }
}

TEST(CacheBody, OtherVersionsRepeatedNamesAndWhatFollowsAreRefused) {
  std::string other = small_body();
  other[0] = 3;
  EXPECT_EQ(read_cache_body(other).code(), Code::unsupported);
  other[0] = 0;
  EXPECT_EQ(read_cache_body(other).code(), Code::unsupported);
  std::string padded = small_body();
  const std::size_t end = padded.size();
  pad_body(padded, 0);
  EXPECT_EQ(padded.size(), 4'096u);
  EXPECT_TRUE(read_cache_body(padded).ok());
  padded[end + 100] = 1;
  const auto follows = read_cache_body(padded);
  EXPECT_EQ(follows.code(), Code::malformed);
  EXPECT_EQ(follows.error().offset, end + 100);
  std::string twice;
  append_body_header(twice, 16, 0, 2);
  append_replica_cache(twice, "", "same", 1, {});
  const std::size_t second = twice.size();
  append_replica_cache(twice, "", "same", 1, {});
  EXPECT_EQ(read_cache_body(twice).error().offset, second);
  std::string pools;
  append_body_header(pools, 16, 0, 0);
  append_pool_count(pools, 2);
  append_learned(pools, "same", {});
  const std::size_t second_pool = pools.size();
  append_learned(pools, "same", {});
  EXPECT_EQ(read_cache_body(pools).error().offset, second_pool);
}

TEST(CacheBody, CountsBeyondTheBytesReserveNothing) {
  std::string huge;
  append_body_header(huge, 16, 0, 60'000);
  EXPECT_EQ(read_cache_body(huge).code(), Code::malformed);
  std::string many;
  append_body_header(many, 16, 0, 70'000);
  EXPECT_EQ(read_cache_body(many).code(), Code::too_large);
  ReplicaCache deep;  // 65 runs of 4,097 blocks, each behind the other: deeper than any path may be
  for (std::uint32_t i = 0; i < 65; ++i)
    deep.tree.runs.push_back({i == 0 ? kNoParentRun : i - 1, i == 0 ? 0 : 4'097u, 4'097, {}});
  deep.tree.blocks.resize(65 * 4'097);
  std::string body;
  append_body_header(body, 16, 0, 1);
  append_replica_cache(body, "", "deep", 0, deep);
  EXPECT_EQ(read_cache_body(body).code(), Code::too_large);
}

TEST(CacheBody, PaddingCostsAnEighthAtMost) {
  for (std::size_t size = 1; size < 3'000'000; size += 1 + size / 9) {
    std::string body(size, 'x');
    pad_body(body, 0);
    EXPECT_GE(body.size(), size);
    EXPECT_LE(body.size(), std::max<std::size_t>(4'096, size + size / 8));
    const std::size_t once = body.size();
    pad_body(body, 0);
    EXPECT_EQ(body.size(), once);
  }
}

}  // namespace
}  // namespace warmroute
