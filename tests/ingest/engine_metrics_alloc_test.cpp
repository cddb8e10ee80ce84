// A parser that has seen pages of the size allocates nothing. A program of its own, since it replaces operator new.
#include "ingest/engine_metrics_file.hpp"
#include "support/counting_new.hpp"

namespace warmroute {
namespace {

TEST(EngineMetricsAllocations, AreNoneOnceWarm) {
  std::vector<std::string> pages;
  for (const std::string& name : test::metrics_cases()) {
    std::string page = test::page_of(name);
    if (page.size() < 100'000 && EngineMetricsParser().parse(page).ok()) pages.push_back(std::move(page));
  }
  std::string many;  // of every engine's kind: more ranks and series than the cases have
  for (int rank = 0; rank < 200; ++rank) {
    const std::string label = "{engine=\"" + std::to_string(rank) + "\",model_name=\"a\\\\b\"";
    many += "vllm:num_requests_waiting" + label + "} 1\nvllm:time_to_first_token_seconds_bucket" + label +
            ",le=\"1\"} 2\n" + "vllm:time_to_first_token_seconds_count" + label + "} 2\nvllm:lora_requests_info" +
            label + ",running_lora_adapters=\"x,y\\\\z\",waiting_lora_adapters=\"\",max_lora=\"4\"} 5\n";
  }
  pages.push_back(many + "vllm:num_requests_running 7");  // and a last line that is copied
  ASSERT_GT(pages.size(), 40u);
  EngineMetricsParser parser;
  EngineCounters counters;
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = test::allocations();
    for (const std::string& page : pages) {
      const auto reading = parser.parse(page);
      if (!reading.ok()) ADD_FAILURE() << page;
      else counters.update(*reading);
    }
    if (round == 0) {
      EXPECT_GT(test::allocations(), before);  // the counter counts
    } else {
      EXPECT_EQ(test::allocations(), before);
    }
  }
}

}  // namespace
}  // namespace warmroute
