// Payloads cut, changed and made up: refused or decoded, never believed beyond their end.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "kv_build.hpp"
#include "kv_case_file.hpp"
#include "kv_sound.hpp"

namespace warmroute {
namespace {

// A payload in memory of exactly its size, so that a sanitizer sees a byte read too many.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : data_(std::make_unique<char[]>(bytes.size())), size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data_.get());
  }
  [[nodiscard]] std::string_view view() const { return {data_.get(), size_}; }
  [[nodiscard]] char& operator[](std::size_t i) { return data_[i]; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_;
};

std::vector<std::string> payloads(std::size_t max_bytes) {
  std::vector<std::string> out;
  for (const test::KvCase& c : test::kv_cases()) {
    const auto message = read_kv_frames(c.socket, c.views());
    if (message && message->payload.size() <= max_bytes) out.emplace_back(message->payload);
  }
  return out;
}

// Every golden of spec and engine: array and map form, stored, removed and cleared.
std::vector<std::string> goldens() {
  return {test::from_hex(
              "93cb3ff8000000000000919aab426c6f636b53746f72656492cf800000000000000507c0940102cd012cce0001117002c0a3"
              "475055c0c0c000"),
          test::from_hex(
              "93cb3ff80000000000009294ac426c6f636b52656d6f7665649107a3475055c091b0416c6c426c6f636b73436c6561726564"
              "00"),
          test::from_hex(
              "93cb3ff80000000000009189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf800000000000"
              "000507b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473940102cd012cce00011170aa626c6f636b5f"
              "73697a6502a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f6964780000")};
}

std::vector<KvEventOptions> all_options() {
  KvEventOptions small, wide, cut, joined;
  small.block_size = 2;
  wide.block_size = 4;
  wide.wide_tokens = true;
  cut.block_size = 4;
  cut.engine_block_size = 16;
  joined.block_size = 4;
  joined.engine_block_size = 2;
  return {small, wide, cut, joined};
}

void expect_survived(KvEventDecoder& decoder, std::string_view payload, const KvEventOptions& options) {
  const auto batch = decoder.decode(payload, options);
  ASSERT_EQ(batch.ok(), decoder.fault() == KvFault::none);
  if (batch) {
    ASSERT_TRUE(test::is_sound(*batch, payload, options));
    for (const KvEvent& e : batch->events) ASSERT_TRUE(options.engine_block_size != 0 || test::ids_agree(e));
  } else {
    ASSERT_TRUE(batch.error().offset <= payload.size() && !batch.error().message.empty());
  }
}

TEST(KvEventRobustness, APayloadCutAnywhereIsRefused) {
  KvEventDecoder decoder;
  std::size_t cuts = 0;
  for (const std::string& payload : payloads(4096)) {
    if (!decoder.decode(payload, {})) continue;
    for (std::size_t size = 0; size < payload.size(); ++size, ++cuts) {
      const Exact cut(std::string_view(payload).substr(0, size));
      ASSERT_FALSE(decoder.decode(cut.view(), {}).ok());
      ASSERT_TRUE(decoder.fault() == KvFault::truncated || decoder.fault() == KvFault::length_overrun)
          << kv_fault_name(decoder.fault());
    }
  }
  EXPECT_GT(cuts, 10'000u);
}

TEST(KvEventRobustness, ACutMessageLosesNoEventBeforeItSilently) {
  // A payload is one value: with any byte gone nothing of it is given out.
  KvEventDecoder decoder;
  const std::string payload = test::batch({test::cleared(), test::removed({1, 2, 3})});
  ASSERT_EQ(decoder.decode(payload, {})->events.size(), 2u);
  EXPECT_FALSE(decoder.decode(std::string_view(payload).substr(0, payload.size() - 1), {}).ok());
  EXPECT_EQ(decoder.counters().refused_payloads, 1u);
}

TEST(KvEventRobustness, EveryByteOfTheGoldensMayBeAnyOther) {
  KvEventDecoder decoder;
  for (const std::string& golden : goldens()) {
    ASSERT_TRUE(decoder.decode(golden, {}).ok());
    Exact bytes(golden);
    for (std::size_t i = 0; i < golden.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        bytes[i] = static_cast<char>(value);
        for (const KvEventOptions& options : all_options()) expect_survived(decoder, bytes.view(), options);
      }
      bytes[i] = golden[i];
    }
  }
}

TEST(KvEventRobustness, EveryByteOfEveryCaseMayBeAnotherTag) {
  KvEventDecoder decoder;
  const auto options = all_options();
  for (const std::string& payload : payloads(1024)) {
    Exact bytes(payload);
    for (std::size_t i = 0; i < payload.size(); ++i) {
      for (const unsigned value :
           {0x00u, 0x81u, 0x92u, 0xc0u, 0xc1u, 0xc4u, 0xcfu, 0xd3u, 0xdbu, 0xddu, 0xdfu, 0xffu}) {
        bytes[i] = static_cast<char>(value);
        expect_survived(decoder, bytes.view(), options[i % options.size()]);
      }
      bytes[i] = payload[i];
    }
  }
}

// Bytes flipped, taken out, doubled; parts of one payload put into another.
std::string mutated(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string bytes = corpus[random() % corpus.size()];
  for (std::uint64_t n = random() % 4 + 1; n != 0 && !bytes.empty(); --n) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 2: bytes.erase(at, random() % 8 + 1); break;
      case 3: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 32)); break;
      default: {
        const std::string& other = corpus[random() % corpus.size()];
        if (!other.empty()) bytes.insert(at, other.substr(random() % other.size(), random() % 64));
      }
    }
  }
  return bytes;
}

void mutate_many(std::size_t rounds, std::uint64_t seed) {
  const auto corpus = payloads(2048);
  const auto options = all_options();
  std::mt19937_64 random(seed);
  KvEventDecoder decoder;
  std::size_t decoded = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const Exact bytes(mutated(corpus, random));
    expect_survived(decoder, bytes.view(), options[round % options.size()]);
    decoded += decoder.fault() == KvFault::none ? 1 : 0;
  }
  EXPECT_GT(decoded,
            rounds / 50);  // mutations that leave much of a payload whole, else only the first check would be tested
  EXPECT_LT(decoded, rounds);
}

TEST(KvEventRobustness, MutatedPayloadsAreRefusedOrSound) { mutate_many(50'000, 1); }
#ifdef WARMROUTE_KV_MILLION
TEST(KvEventRobustness, AMillionMutatedPayloadsAreRefusedOrSound) { mutate_many(1'000'000, 2); }
#endif

TEST(KvEventRobustness, FramesOfAnyNumberAndSizeAreReadOrRefused) {
  std::mt19937_64 random(3);
  const std::string zeros(20, '\0'), ones(20, '\xff');
  std::size_t read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string_view> frames(random() % 6);
    for (auto& frame : frames) {
      frame = std::string_view(random() % 2 == 0 ? zeros : ones)
                  .substr(0, random() % 3 == 0 ? random() % 20 : 8 * (random() % 2));
    }
    KvFault fault = KvFault::none;
    const auto message = read_kv_frames(static_cast<KvSocket>(random() % 3), frames, &fault);
    ASSERT_EQ(message.ok(), fault == KvFault::none);
    read += message.ok() ? 1 : 0;
  }
  EXPECT_GT(read, 100u);
}

TEST(KvEventRobustness, MemoryFollowsThePayloadNotItsHeaders) {
  // 4 billion tokens, ids, events, bytes: each claimed with nothing behind.
  KvEventDecoder decoder;
  for (const std::string_view lie : {"ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff", "c9ffffffff01"}) {
    for (const std::string& head : {std::string("93cb3ff0000000000000"), std::string("93cb3ff000000000000091"),
                                    std::string("93cb3ff00000000000009197ab426c6f636b53746f726564"),
                                    std::string("93cb3ff00000000000009197ab426c6f636b53746f7265649107c0")}) {
      EXPECT_FALSE(decoder.decode(test::from_hex(head + std::string(lie)), {}).ok());
      EXPECT_TRUE(decoder.fault() == KvFault::length_overrun || decoder.fault() == KvFault::bad_type)
          << kv_fault_name(decoder.fault());
    }
  }
}

TEST(KvEventRobustness, LimitsOfTheOptionsHold) {
  KvEventDecoder decoder;
  KvEventOptions options;
  const std::string payload = test::batch({test::cleared(), test::cleared(), test::cleared()});
  options.max_bytes = payload.size();
  options.max_events = 3;
  EXPECT_TRUE(decoder.decode(payload, options).ok());
  options.max_events = 2;
  EXPECT_EQ(decoder.decode(payload, options).code(), Code::too_large);
  options.max_events = 3;
  options.max_bytes = payload.size() - 1;
  EXPECT_EQ(decoder.decode(payload, options).code(), Code::too_large);
}

TEST(KvEventRobustness, NamesOfCutBlocksAreBoundedHoweverManyAreRemoved) {
  KvEventDecoder decoder;
  KvEventOptions options;
  options.block_size = 1;
  options.engine_block_size = kMaxEngineParts;
  const std::string event = test::removed(test::Ids(10'000, 5));
  const auto batch = decoder.decode(test::batch(std::vector<std::string>(20, event)), options);
  ASSERT_TRUE(batch.ok());
  EXPECT_GT(batch->events.size(), 3u);
  EXPECT_GT(batch->rejected_count, 3u);
  EXPECT_EQ(batch->rejected[0].fault, KvFault::too_large);
}

TEST(KvEventRobustness, KeepsSoManyOfTheRejectedAndCountsTheRest) {
  KvEventDecoder decoder;
  const std::vector<std::string> junk(10'000, "\x05");
  const auto batch = decoder.decode(test::batch(junk), {});
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->rejected.size(), kMaxRejectedKept);
  EXPECT_EQ(batch->rejected_count, 10'000u);
  EXPECT_EQ(decoder.counters().rejected[static_cast<std::size_t>(KvFault::bad_type)], 10'000u);
}

TEST(KvEventRobustness, BadOptionsAreTheCallersBug) {
  KvEventDecoder decoder;
  KvEventOptions options;
  options.block_size = 0;
  EXPECT_EQ(decoder.decode(test::batch({}), options).code(), Code::invalid_argument);
  options.block_size = 513;
  EXPECT_EQ(decoder.decode(test::batch({}), options).code(), Code::invalid_argument);
  options.block_size = 16;
  options.engine_block_size = 16 * kMaxEngineParts;
  EXPECT_TRUE(decoder.decode(test::batch({}), options).ok());
  options.engine_block_size = 16 * kMaxEngineParts + 16;
  EXPECT_EQ(decoder.decode(test::batch({}), options).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace warmroute
