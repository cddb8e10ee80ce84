#include "warmroute/prefix/block_hash.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <charconv>
#include <string>
#include <vector>

namespace warmroute {
namespace {

std::uint64_t number(std::string_view text) {
  std::uint64_t v = 0;
  EXPECT_EQ(std::from_chars(text.data(), text.data() + text.size(), v).ec, std::errc{}) << text;
  return v;
}

struct Vector {
  std::uint32_t block_size = 0;
  std::vector<std::uint32_t> tokens;
  std::string adapter, salt;
  bool eagle = false;
  std::vector<std::vector<std::uint64_t>> objects;
  std::vector<std::uint64_t> local, sequence;
};

std::string text_or_empty(const simdjson::dom::element& doc, const char* key) {
  std::string_view text;
  return doc[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

Vector parse(const simdjson::dom::element& doc) {
  Vector v;
  v.block_size = static_cast<std::uint32_t>(std::uint64_t(doc["block_size"]));
  simdjson::dom::element gen;
  if (doc["tokens_gen"].get(gen) == simdjson::SUCCESS) {
    const std::uint64_t start = gen["start"], step = gen["step"], mod = gen["mod"], count = gen["count"];
    for (std::uint64_t i = 0; i < count; ++i) v.tokens.push_back(static_cast<std::uint32_t>((start + step * i) % mod));
  } else {
    for (std::uint64_t t : doc["tokens"].get_array()) v.tokens.push_back(static_cast<std::uint32_t>(t));
  }
  v.adapter = text_or_empty(doc, "lora_name");
  v.salt = text_or_empty(doc, "cache_namespace");
  v.eagle = bool(doc["is_eagle"]);
  simdjson::dom::array blocks;
  if (doc["mm_hashes"].get(blocks) == simdjson::SUCCESS) {
    for (auto block : blocks) {
      auto& list = v.objects.emplace_back();
      simdjson::dom::array objects;
      if (block.get(objects) != simdjson::SUCCESS) continue;
      for (std::string_view o : objects) list.push_back(number(o));
    }
  }
  for (std::string_view s : doc["local"].get_array()) v.local.push_back(number(s));
  for (std::string_view s : doc["sequence"].get_array()) v.sequence.push_back(number(s));
  return v;
}

std::vector<BlockHash> hash(const Vector& v, std::uint64_t seed) {
  std::vector<BlockHash> out(v.tokens.size() + 1);
  std::size_t count = 0;
  if (!v.objects.empty()) {
    std::vector<std::span<const std::uint64_t>> objects(v.objects.begin(), v.objects.end());
    count = hash_multimodal_blocks(v.tokens, v.block_size, seed, objects, v.eagle, out);
  } else if (v.eagle) {
    count = hash_eagle_blocks(v.tokens, v.block_size, seed, out);
  } else {
    count = hash_token_blocks(v.tokens, v.block_size, seed, out);
  }
  out.resize(count);
  return out;
}

TEST(BlockHash, EqualsEveryDynamoVector) {
  simdjson::dom::parser parser;
  simdjson::dom::document_stream lines;
  ASSERT_EQ(parser.load_many(WARMROUTE_TEST_DATA "/hash_vectors.jsonl").get(lines), simdjson::SUCCESS);
  std::size_t seen = 0, eagle = 0, multimodal = 0, long_blocks = 0;
  for (auto result : lines) {
    const simdjson::dom::element doc = result.value();
    simdjson::dom::element error;
    if (std::string_view(doc["engine"]) != "dynamo" || doc["error"].get(error) == simdjson::SUCCESS) continue;
    SCOPED_TRACE(std::string_view(doc["id"]));
    const Vector v = parse(doc);
    ++seen;
    eagle += v.eagle;
    multimodal += !v.objects.empty();
    long_blocks += v.block_size > 60;
    const auto blocks = hash(v, block_seed({.adapter = v.adapter, .cache_salt = v.salt}));
    ASSERT_EQ(blocks.size(), v.local.size());
    std::vector<SequenceHash> chain(blocks.size());
    sequence_hashes(blocks, chain);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(to_u64(blocks[i]), v.local[i]) << i;
      EXPECT_EQ(to_u64(chain[i]), v.sequence[i]) << i;
    }
  }
  EXPECT_EQ(seen, 70U);
  EXPECT_GT(eagle, 0U);
  EXPECT_GT(multimodal, 0U);
  EXPECT_GT(long_blocks, 0U);
}

std::vector<std::uint32_t> some_tokens(std::size_t count) {
  std::vector<std::uint32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint32_t>(i * 2654435761U);
  return tokens;
}

TEST(BlockHash, EveryBlockSizeEqualsPlainXxh3) {
  const auto tokens = some_tokens(1300);
  std::vector<BlockHash> out(tokens.size());
  for (std::uint32_t size = 1; size <= kMaxBlockTokens; ++size) {
    const std::size_t count = hash_token_blocks(tokens, size, 99, out);
    ASSERT_EQ(count, tokens.size() / size);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(to_u64(out[i]), XXH3_64bits_withSeed(tokens.data() + i * size, size * 4, 99)) << size << ' ' << i;
    }
  }
}

TEST(BlockHash, ChainedFormGivesBothAnswersAtOnce) {
  const auto tokens = some_tokens(1300);
  for (const std::uint32_t size : {1U, 4U, 16U, 32U, 64U, 512U}) {
    std::vector<BlockHash> blocks(tokens.size()), expected(tokens.size());
    std::vector<SequenceHash> chain(tokens.size()), expected_chain(tokens.size());
    const std::size_t count = hash_token_blocks(tokens, size, 7, expected);
    sequence_hashes(std::span(expected).first(count), expected_chain);
    ASSERT_EQ(hash_token_blocks_chained(tokens, size, 7, blocks, chain), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(blocks[i], expected[i]) << size << ' ' << i;
      ASSERT_EQ(chain[i], expected_chain[i]) << size << ' ' << i;
    }
  }
}

TEST(BlockHash, IgnoresAPartialTailAndStopsAtTheRoomGiven) {
  const auto tokens = some_tokens(47);
  std::vector<BlockHash> out(8, BlockHash{5});
  EXPECT_EQ(hash_token_blocks(tokens, 16, 1, out), 2U);
  EXPECT_EQ(to_u64(out[2]), 5U);
  EXPECT_EQ(hash_token_blocks(tokens, 4, 1, std::span(out).first(3)), 3U);
  EXPECT_EQ(to_u64(out[3]), 5U);
  EXPECT_EQ(hash_token_blocks({}, 16, 1, out), 0U);
  EXPECT_EQ(hash_eagle_blocks(std::span(tokens).first(16), 16, 1, out), 0U);
  EXPECT_EQ(hash_eagle_blocks(std::span(tokens).first(17), 16, 1, out), 1U);
}

TEST(BlockHash, RefusesBlockSizesOutsideItsRange) {
  const auto tokens = some_tokens(600);
  std::vector<BlockHash> out(600);
  EXPECT_EQ(hash_token_blocks(tokens, 0, 1, out), 0U);
  EXPECT_EQ(hash_token_blocks(tokens, 513, 1, out), 0U);
  EXPECT_EQ(hash_eagle_blocks(tokens, 0, 1, out), 0U);
  EXPECT_EQ(hash_multimodal_blocks(tokens, 0, 1, {}, false, out), 0U);
}

TEST(BlockHash, ObjectsCountInAnyOrder) {
  const auto tokens = some_tokens(4);
  const std::uint64_t sorted[] = {1, 1, 7, ~0ULL, ~0ULL}, mixed[] = {~0ULL, 7, 1, ~0ULL, 1};
  BlockHash a[1], b[1];
  const std::span<const std::uint64_t> one[] = {sorted}, other[] = {mixed};
  ASSERT_EQ(hash_multimodal_blocks(tokens, 4, 3, one, false, a), 1U);
  ASSERT_EQ(hash_multimodal_blocks(tokens, 4, 3, other, false, b), 1U);
  EXPECT_EQ(a[0], b[0]);
}

TEST(HashSpace, EveryMemberMakesAnotherSeed) {
  const HashSpace spaces[] = {{},
                              {.hash_seed = 5},
                              {.adapter = "x"},
                              {.cache_salt = "x"},
                              {.isolation_key = "x"},
                              {.text = true},
                              {.adapter = "x", .cache_salt = "x"},
                              {.adapter = "text"}};
  for (std::size_t i = 0; i < std::size(spaces); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      // an adapter that is called "text" sums to the seed of text; its blocks are of tokens, so nothing can match
      if (spaces[i].adapter == "text" && spaces[k].text) continue;
      EXPECT_NE(block_seed(spaces[i]), block_seed(spaces[k])) << i << ' ' << k;
    }
  }
  EXPECT_EQ(block_seed({}), 1337U);
  EXPECT_EQ(block_seed({.adapter = ""}), 1337U);
}

TEST(TextBlocks, HashSixtyFourBytesEach) {
  const std::string text(200, 'a');
  BlockHash out[4];
  EXPECT_EQ(hash_text_blocks(text, 11, out), 3U);
  EXPECT_EQ(to_u64(out[2]), XXH3_64bits_withSeed(text.data() + 128, 64, 11));
}

}  // namespace
}  // namespace warmroute
