// A decoder that has seen payloads of the size allocates nothing. A program of its own, since it replaces operator new.
#include <gtest/gtest.h>

#include "kv_build.hpp"
#include "support/counting_new.hpp"
#include "warmroute/ingest/kv_events.hpp"

namespace warmroute {
namespace {

using test::count_from;
using test::Stored;

TEST(KvEventAllocations, AreNoneOnceWarm) {
  const Stored large{.ids = count_from(1, 3'000), .tokens = count_from(1, 48'000), .size = 16};
  Stored salted{.ids = {7'001, 7'002}, .tokens = count_from(1, 32), .size = 16};
  salted.extra_keys = test::Pack().array(2).array(2).text(std::string(64, 'a')).text("salt").nil().str();
  const Stored child{.ids = {7'003}, .parent = 7'002, .tokens = count_from(1, 16), .size = 16, .lora_name = "a"};
  const Stored eagle{.ids = {7'004}, .tokens = count_from(1, 17), .size = 16, .pairs = true};
  const std::vector<std::string> payloads = {
      test::batch({large.as_array(), salted.as_array(), child.as_map(), eagle.as_map(), "\x01"}),
      test::batch({test::removed({1, 2, 3}), test::removed({7'001}), test::cleared()}),
      test::batch({salted.as_array(), child.as_array()}),
  };
  KvEventDecoder decoder;
  KvEventOptions cut;
  cut.block_size = 4;
  cut.engine_block_size = 16;
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = test::allocations();
    for (const std::string& payload : payloads) {
      for (const KvEventOptions& options : {KvEventOptions(), cut}) {
        if (!decoder.decode(payload, options).ok()) ADD_FAILURE();
      }
    }
    if (round == 0) {
      EXPECT_GT(test::allocations(), before);  // the counter counts
    } else {
      EXPECT_EQ(test::allocations(), before);
    }
  }
}

TEST(KvEventAllocations, WhatOneHugePayloadTookIsGivenBack) {
  const Stored huge{.ids = {1}, .tokens = count_from(1, 5'000'000), .size = 5'000'000};
  const std::string payload = test::batch({huge.as_array()}), small = test::batch({test::cleared()});
  KvEventDecoder decoder;
  KvEventOptions options;
  options.max_bytes = payload.size();
  ASSERT_TRUE(decoder.decode(small, options).ok());
  const std::size_t before = test::live_bytes();
  ASSERT_TRUE(decoder.decode(payload, options).ok());
  EXPECT_GT(test::live_bytes(), before + 20'000'000);
  ASSERT_TRUE(decoder.decode(small, options).ok());
  EXPECT_LT(test::live_bytes(), before + 100'000);
}

}  // namespace
}  // namespace warmroute
