// Workloads that the simulator makes or reads by itself.
#include "warmroute/trace/workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "support/scratch.hpp"

namespace warmroute::trace {
namespace {

using Ids = std::vector<std::uint64_t>;

TEST(Workload, MakesTheHotPrefixAsDescribed) {
  const Workload workload = hot_prefix({.agents = 10, .turns = 3});
  ASSERT_EQ(workload.requests.size(), 30u);
  EXPECT_TRUE(workload.closed_loop());
  for (std::size_t i = 0; i < workload.requests.size(); ++i) {
    const WorkloadRequest& r = workload.requests[i];
    EXPECT_EQ(r.follows, i % 3 != 0);
    EXPECT_EQ(r.first_follower, i % 3 == 2 ? kNoRequest : i + 1);
    EXPECT_EQ(r.block_count, r.input_tokens / 64);
    EXPECT_GE(r.output_tokens, 64);
    EXPECT_LE(r.output_tokens, 511);
    const auto blocks = workload.blocks_of(r);
    EXPECT_EQ(blocks[0], 0u);
    EXPECT_EQ(blocks[95], 95u);  // 6,144 tokens in common
    if (i % 3 != 0) {            // a turn begins with all of the one before
      const auto before = workload.blocks_of(workload.requests[i - 1]);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), blocks.begin()));
      EXPECT_GE(r.delay_us, 500'000);
      EXPECT_LE(r.delay_us, 4'500'000);
    }
  }
}

TEST(Workload, ABlockOfNoTokensIsNoneAndNothingIsDividedByIt) {
  TraceRecord record;
  record.block_tokens = 0;
  record.input_tokens = 1'000;
  EXPECT_EQ(open_loop({record}).block_tokens, kMooncakeBlockTokens);
  EXPECT_EQ(open_loop({record}, -1).block_tokens, kMooncakeBlockTokens);
  EXPECT_TRUE(hot_prefix({.block_tokens = 0}).requests.empty());
  EXPECT_TRUE(hot_prefix({.system_tokens = -1}).requests.empty());
}

TEST(Workload, ReadsConversationsOfAgents) {
  const std::string path = test::scratch_path("agents.jsonl");
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  for (int line = 0; line < 2; ++line) {
    std::fputs(
        "{\"id\":\"a\",\"block_size\":64,\"tool_tokens\":64,\"system_tokens\":70,\"requests\":[[0.0,200,10,1.5,0,[1,4]]"
        ","
        "{\"t\":3,\"sub\":[[0.0,130,5,1,0,[50,2]],[1.0,190,6,1,2.5,[50,2,60,1]]]},[9.0,300,20,1.5,90.0,[1,3,7,2]]]}\n",
        file);
  }
  std::fclose(file);
  const auto workload = read_agent_trace(path, {.share_system_prompts = true});
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->requests.size(), 8u);
  EXPECT_EQ(workload->block_tokens, 64);
  const auto& requests = workload->requests;
  const auto blocks = [&](std::size_t i) {
    const auto span = workload->blocks_of(requests[i]);
    return Ids(span.begin(), span.end());
  };
  EXPECT_EQ(blocks(0), (Ids{0, 1, 2}));  // 200 tokens: three whole blocks
  EXPECT_EQ(blocks(1), (Ids{3, 4}));
  EXPECT_EQ(blocks(2).size(), 2u);          // 190 tokens: two
  EXPECT_EQ(blocks(3), (Ids{0, 1, 2, 5}));  // 300 tokens: four; the ids 1, 2, 3 and 7
  EXPECT_EQ(blocks(4)[0], 0u);              // 134 tokens of tools and system: two blocks in common
  EXPECT_EQ(blocks(4)[1], 1u);
  EXPECT_NE(blocks(4)[2], 2u);
  EXPECT_FALSE(requests[0].follows);
  EXPECT_TRUE(requests[1].follows);  // the sub-agent starts at the end of turn 1
  EXPECT_EQ(requests[2].delay_us, 2'500'000);
  EXPECT_EQ(requests[3].delay_us, 60'000'000);  // 90 s of thinking are cut
  EXPECT_EQ(requests[0].first_follower, 3u);
  EXPECT_EQ(requests[3].next_sibling, 1u);
  EXPECT_EQ(requests[1].first_follower, 2u);
  EXPECT_EQ(read_agent_trace(path + ".gone", {}).code(), Code::io);
}

}  // namespace
}  // namespace warmroute::trace
