// What the case files do not show: tables of users, several models, limits, errors, other engines, signals to a router.
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "ingest/engine_metrics_file.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

// The reading of one page by a fresh parser; views stay while the struct does.
struct Read {
  explicit Read(std::string text, std::string_view engine = {}, const EngineMetricsOptions& options = {})
      : page(std::move(text)), parser(options), result(parser.parse(page, engine)) {}
  const EngineReading& operator*() const { return *result; }
  const EngineReading* operator->() const { return &*result; }
  const EngineRank& only() const {
    EXPECT_EQ(result->ranks.size(), 1u);
    return result->ranks[0];
  }

  std::string page;
  EngineMetricsParser parser;
  Result<EngineReading> result;
};

constexpr std::string_view kQueue = "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 4\n";

TEST(EngineMetrics, ReadsTgi) {
  const Read read(
      "# TYPE tgi_queue_size gauge\ntgi_queue_size 3\ntgi_batch_current_size 7\ntgi_batch_current_max_tokens 900\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read->engine, "tgi");
  EXPECT_EQ(read.only().waiting, 3);
  EXPECT_EQ(read.only().running, 7);
  EXPECT_FALSE(read.only().kv_usage.has_value());
}

TEST(EngineMetrics, ReadsTensorRtBlocksWhereThereAreNoTokenCounters) {
  const Read read(
      "trtllm_kv_cache_reused_blocks_total{model_name=\"m\"} 9000\n"
      "trtllm_kv_cache_missed_blocks_total{model_name=\"m\"} 3000\n"
      "trtllm_kv_cache_hit_rate{model_name=\"m\"} 0.75\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().prefix_hits, 9000);
  EXPECT_EQ(read.only().prefix_queries, 12000);
  EXPECT_EQ(read.only().prefix_unit, PrefixUnit::blocks);
  EXPECT_EQ(read.only().prefix_hit_rate, 0.75);
}

TEST(EngineMetrics, PrefersTheQueueOfSglangsMetricsToThatOfItsLoads) {
  const Read read("sglang_num_waiting_reqs 2\nsglang:num_queue_reqs 3\nsglang_num_waiting_uncached_tokens 900\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().waiting, 3);
  EXPECT_EQ(read.only().waiting_tokens, 900);
  const Read other("sglang_num_waiting_reqs 2\nsglang_num_waiting_uncached_tokens NaN\n");
  ASSERT_TRUE(other.result.ok());
  EXPECT_EQ(other.only().waiting, 2);
  EXPECT_FALSE(other.only().waiting_tokens.has_value());
}

TEST(EngineMetrics, TakesARateThatIsOffForUnknown) {
  const Read read(
      "vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} -1.0\nvllm:gpu_cache_usage_perc{model_name=\"m\"} 0.5\n"
      "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"2048\"} 1.0\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_FALSE(read.only().dp_rank.has_value());
  EXPECT_EQ(read.only().model, "m");
  EXPECT_FALSE(read.only().prefix_hit_rate.has_value());
  EXPECT_EQ(read.only().kv_usage, 0.5);
  EXPECT_EQ(read.only().block_count, 2048);  // 0.6: the configuration names neither model nor engine
}

TEST(EngineMetrics, AddsPrioritiesWhereTheirTotalIsMissing) {
  const Read read(
      "sglang:num_queue_reqs{priority=\"0\",tp_rank=\"0\"} 2\nsglang:num_queue_reqs{priority=\"0\",tp_rank=\"1\"} 3\n"
      "sglang:num_queue_reqs{priority=\"5\",tp_rank=\"0\"} 7\nsglang:num_running_reqs{tp_rank=\"0\"} 4\n"
      "sglang:num_running_reqs{tp_rank=\"1\"} 4\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().waiting, 10);  // the larger of two processes, and the other priority
  EXPECT_EQ(read.only().running, 4);
}

TEST(EngineMetrics, DoesNotAddATotalToItsParts) {
  const Read read(
      "sglang:cached_tokens_total{cache_source=\"device\"} 40\nsglang:cached_tokens_total{cache_source=\"total\"} 46\n"
      "sglang:cached_tokens_total{cache_source=\"host\"} 6\nsglang:prompt_tokens_total 100\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().prefix_hits, 46);
  EXPECT_EQ(read.only().prefix_queries, 100);
}

TEST(EngineMetrics, DoesNotKnowASumOfWhichOnePartIsUnknown) {
  const Read read(
      "sglang:prompt_tokens_total{is_streaming=\"true\"} 90\nsglang:prompt_tokens_total{is_streaming=\"false\"} NaN\n"
      "sglang:cached_tokens_total 40\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_FALSE(read.only().prefix_hits.has_value());
  EXPECT_FALSE(read.only().prefix_queries.has_value());
  EXPECT_EQ(read.only().prefix_unit, PrefixUnit::unknown);
}

TEST(EngineMetrics, TakesHitsAndQueriesFromOnePairOfNames) {
  const Read read(
      "vllm:prefix_cache_hits_total 5\nvllm:gpu_prefix_cache_queries_total 100\nvllm:gpu_prefix_cache_hits_total 60\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().prefix_hits, 60);
  EXPECT_EQ(read.only().prefix_queries, 100);
}

TEST(EngineMetrics, ReadsOneSpellingOfANameOnly) {
  const Read read(
      "vllm_prefix_cache_hits_total 5\nvllm_prefix_cache_queries_total 9\n"
      "ray_vllm_prefix_cache_hits_total{node=\"a\"} 5\nray_vllm_prefix_cache_queries_total{node=\"a\"} 9\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().prefix_hits, 5);
  EXPECT_EQ(read.only().prefix_queries, 9);
}

TEST(EngineMetrics, TellsASeriesByItsLabelsInAnyOrder) {
  const Read read(
      "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\",x=\"\"} 5\n"
      "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 9\n"
      "vllm:prefix_cache_hits_total{model_name=\"m\",engine=\"0\"} 7\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().prefix_hits, 7);  // one series, said twice: not 12
}

TEST(EngineMetrics, KeepsModelsOfOneServerApart) {
  const Read read(
      "vllm:num_requests_waiting{engine=\"0\",model_name=\"b\"} "
      "1\nvllm:num_requests_waiting{engine=\"1\",model_name=\"b\"} 2\n"
      "vllm:num_requests_waiting{engine=\"0\",model_name=\"a\"} 3\nvllm:num_requests_running{model_name=\"a\"} 4\n"
      "vllm:num_requests_running{model_name=\"b\"} 5\nvllm:cache_config_info{engine=\"1\",block_size=\"16\"} 1\n"
      "vllm:cache_config_info{engine=\"0\",block_size=\"32\"} 1\n");
  ASSERT_TRUE(read.result.ok());
  ASSERT_EQ(read->ranks.size(), 3u);
  EXPECT_EQ(read->ranks[0].model, "a");
  EXPECT_EQ(read->ranks[0].waiting, 3);
  EXPECT_EQ(read->ranks[0].running, 4);  // the only rank of its model
  EXPECT_EQ(read->ranks[1].model, "b");
  EXPECT_EQ(read->ranks[1].dp_rank, 0u);
  EXPECT_FALSE(read->ranks[1].block_tokens.has_value());  // two models have a rank 0
  EXPECT_EQ(read->ranks[2].dp_rank, 1u);
  EXPECT_EQ(read->ranks[2].block_tokens, 16);
  ASSERT_TRUE(read->shared.has_value());
  EXPECT_EQ(read->shared->model, "b");
  EXPECT_EQ(read->shared->running, 5);
  EXPECT_EQ(read->shared->block_tokens, 32);
}

TEST(EngineMetrics, NamesNoModelForWhatSeveralModelsShare) {
  std::string page;
  for (const char* model : {"a", "b", "c"}) {
    const std::string label = std::string(",model_name=\"") + model + "\"} 1\n";
    page += "vllm:num_requests_waiting{engine=\"0\"" + label + "vllm:num_requests_waiting{engine=\"1\"" + label;
    page += "vllm:num_requests_running{x=\"y\"" + label;
  }
  const Read read(page);
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read->ranks.size(), 6u);
  ASSERT_TRUE(read->shared.has_value());
  EXPECT_EQ(read->shared->model, "");
  EXPECT_EQ(read->shared->running, 1);
}

TEST(EngineMetrics, ResolvesEscapesInModelNames) {
  const Read read("vllm:num_requests_waiting{model_name=\"a\\\"b\\\\c\\n\"} 1\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().model, "a\"b\\c\n");
}

TEST(EngineMetrics, AddsHistogramsAtTheBoundsThatAllHave) {
  const std::string name = "sglang:time_to_first_token_seconds";
  const auto part = [&](const std::string& streaming, const std::string& bounds, const std::string& count) {
    std::string text;
    for (std::size_t at = 0; at < bounds.size();) {
      const std::size_t colon = bounds.find(':', at);
      const std::size_t end = std::min(bounds.find(' ', at), bounds.size());
      text += name + "_bucket{is_streaming=\"" + streaming + "\",le=\"" + bounds.substr(at, colon - at) + "\"} " +
              bounds.substr(colon + 1, end - colon - 1) + "\n";
      at = end + 1;
    }
    return text + name + "_count{is_streaming=\"" + streaming + "\"} " + count + "\n" + name + "_sum{is_streaming=\"" +
           streaming + "\"} 1.5\n";
  };
  const Read read(part("true", "1:1 2:3 4:4 +Inf:5", "5") + part("false", "1.0:10 4e0:20 +Inf:30", "30"));
  ASSERT_TRUE(read.result.ok());
  ASSERT_TRUE(read.only().ttft.has_value());
  const EngineHistogram& ttft = *read.only().ttft;
  ASSERT_EQ(ttft.buckets.size(), 3u);
  EXPECT_EQ(ttft.buckets[0].le, 1);
  EXPECT_EQ(ttft.buckets[0].count, 11);
  EXPECT_EQ(ttft.buckets[1].le, 4);
  EXPECT_EQ(ttft.buckets[1].count, 24);
  EXPECT_TRUE(std::isinf(ttft.buckets[2].le));
  EXPECT_EQ(ttft.buckets[2].count, 35);
  EXPECT_EQ(ttft.count, 35);
  EXPECT_EQ(ttft.sum, 3.0);
}

TEST(EngineMetrics, TakesTheLastBucketForAMissingCount) {
  const Read read(
      "vllm:time_to_first_token_seconds_bucket{le=\"1\"} 3\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 5\n");
  ASSERT_TRUE(read.result.ok());
  ASSERT_TRUE(read.only().ttft.has_value());
  EXPECT_EQ(read.only().ttft->count, 5);
  EXPECT_FALSE(read.only().ttft->sum.has_value());
  const Read neither("vllm:time_to_first_token_seconds_bucket{le=\"1\"} 3\n");
  EXPECT_FALSE(neither.only().ttft.has_value());
}

TEST(EngineMetrics, TakesRanksUpTo65535) {
  const Read read("vllm:num_requests_waiting{engine=\"65535\"} 1\nvllm:num_requests_waiting{engine=\"65536\"} 2\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_EQ(read.only().dp_rank, 65'535u);
  EXPECT_EQ(read->skipped_lines, 1u);
}

TEST(EngineMetrics, DoesNotKnowAHistogramWithABadCount) {
  const Read read(
      "vllm:time_to_first_token_seconds_bucket{le=\"1\"} -3\nvllm:time_to_first_token_seconds_count 5\n"
      "vllm:time_to_first_token_seconds_bucket{le=\"many\"} 4\nvllm:time_to_first_token_seconds_bucket 4\n");
  ASSERT_TRUE(read.result.ok());
  EXPECT_FALSE(read.only().ttft.has_value());
  EXPECT_EQ(read->skipped_lines, 2u);  // buckets without a bound
}

TEST(EngineMetrics, ReadsWhatTheCallerNamesOfAPageWithSeveralEngines) {
  const std::string page = test::page_of("x-mixed-engines");
  EXPECT_EQ(Read(page).result.code(), Code::invalid_argument);
  EXPECT_EQ(Read(page, "vllm").only().waiting, 4);
  EXPECT_EQ(Read(page, "sglang").only().waiting, 50);
  EXPECT_EQ(Read(page, "tgi").result.code(), Code::not_found);
  const Read unknown(page, "vlm");
  ASSERT_EQ(unknown.result.code(), Code::invalid_argument);
  EXPECT_EQ(unknown.result.error().message,
            "unknown_engine: no table of that name; there are vllm, sglang, trtllm, triton-trtllm, tgi, llamacpp");
}

TEST(EngineMetrics, SaysWhereAPageStopsBeingOne) {
  const Read read("# a comment\n\n<html>\n</html>\n");
  ASSERT_EQ(read.result.code(), Code::malformed);
  EXPECT_EQ(read.result.error().offset, 13u);
  EXPECT_EQ(Read("\xEF\xBB\xBF<html>").result.error().offset, 3u);
  EXPECT_EQ(Read("go_threads 5\n<html>\ngo_gc 6\n").result.code(), Code::not_found);
}

TEST(EngineMetrics, KeepsItsLimits) {
  EngineMetricsOptions options;
  options.max_bytes = 3'000;
  options.max_ranks = 2;
  options.max_series = 4;
  std::string page;
  for (int rank = 0; rank < 5; ++rank) page += "vllm:num_requests_waiting{engine=\"" + std::to_string(rank) + "\"} 1\n";
  page += "vllm:num_requests_waiting{engine=\"1\"} 8\n";
  const Read ranks(page, {}, options);
  ASSERT_TRUE(ranks.result.ok());
  EXPECT_EQ(ranks->ranks.size(), 2u);
  EXPECT_EQ(ranks->ranks[1].waiting, 8);  // those that are known go on
  EXPECT_EQ(ranks->skipped_lines, 3u);
  page.clear();
  for (int x = 0; x < 6; ++x) page += "vllm:num_requests_waiting{x=\"" + std::to_string(x) + "\"} 1\n";
  const Read series(page + "vllm:num_requests_waiting{x=\"3\"} 9\n", {}, options);
  EXPECT_EQ(series.only().waiting, 9);
  EXPECT_EQ(series->skipped_lines, 2u);
  const Read large(std::string(3'001, '\n'), {}, options);
  ASSERT_EQ(large.result.code(), Code::too_large);
  EXPECT_EQ(large.result.error().offset, 3'000u);
}

TEST(EngineMetrics, ReadsByAUsersTable) {
  EngineMetricsTable table{"mine", {"my_"}, "replica", "", {}};
  table.rows.push_back({.field = EngineField::waiting, .name = "load", .where = {{"kind", "queue"}}});
  table.rows.push_back({.field = EngineField::running, .name = "load", .where = {{"kind", "batch"}}});
  table.rows.push_back({.field = EngineField::block_tokens, .name = "info", .value_label = "page"});
  table.rows.push_back({.field = EngineField::waiting_tokens, .name = "uncached"});
  EngineMetricsParser parser;
  ASSERT_TRUE(parser.set_table(table).ok());
  const auto read = parser.parse(
      "my_load{kind=\"queue\",replica=\"3\"} 5\nmy_load{kind=\"batch\",replica=\"3\"} 6\n"
      "my_load{kind=\"other\",replica=\"4\"} 7\nmy_info{page=\"64\",replica=\"3\"} 1\nmy_uncached{replica=\"3\"} "
      "800\n");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->engine, "mine");
  ASSERT_EQ(read->ranks.size(), 1u);
  EXPECT_EQ(read->ranks[0].dp_rank, 3u);
  EXPECT_EQ(read->ranks[0].waiting, 5);
  EXPECT_EQ(read->ranks[0].running, 6);
  EXPECT_EQ(read->ranks[0].block_tokens, 64);
  EXPECT_EQ(read->ranks[0].waiting_tokens, 800);

  table.engine = "vllm";  // in the place of the built-in one
  ASSERT_TRUE(parser.set_table(table).ok());
  EXPECT_EQ(parser.parse(kQueue).code(), Code::not_found);
  EXPECT_EQ(parser.parse("my_load{kind=\"queue\"} 5\n").code(), Code::invalid_argument);  // "mine" knows it, too
  EXPECT_EQ(parser.parse("my_load{kind=\"queue\"} 5\n", "vllm")->ranks[0].waiting, 5);
}

TEST(EngineMetricsTables, AreTheSameThroughJson) {
  for (const EngineMetricsTable& table : builtin_engine_tables()) {
    ASSERT_TRUE(validate(table).ok()) << validate(table).error().message;
    const std::string json = engine_table_to_json(table);
    const auto again = engine_table_from_json(json);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(engine_table_to_json(*again), json);
    EXPECT_EQ(again->rows.size(), table.rows.size());
    EXPECT_EQ(again->prefixes, table.prefixes);
  }
}

TEST(EngineMetricsTables, ReadAlikeFromJson) {
  EngineMetricsParser built_in;
  EngineMetricsParser from_json;
  for (const EngineMetricsTable& table : builtin_engine_tables()) {
    ASSERT_TRUE(from_json.set_table(*engine_table_from_json(engine_table_to_json(table))).ok());
  }
  for (const std::string& name : test::metrics_cases()) {
    const std::string page = test::page_of(name);
    const auto a = built_in.parse(page);
    const auto b = from_json.parse(page);
    ASSERT_EQ(a.code(), b.code()) << name;
    if (!a.ok()) continue;
    EXPECT_EQ(test::described(*a), test::described(*b)) << name;
  }
}

TEST(EngineMetricsTables, NameEveryFault) {
  const auto read = engine_table_from_json(
      R"({"engine": 5, "colour": "red", "prefixes": ["x_"], "rows": [{"field": "load", "name": "a"}, {"name": "b"}, 7,
          {"field": "lora_running", "name": "l"}, {"field": "prefix_hits", "name": "h", "unit": "tokens", "pair": 3},
          {"field": "kv_usage", "name": "q\"x", "where": {"k": 1}}]})");
  ASSERT_EQ(read.code(), Code::invalid_argument);
  for (const char* fault :
       {"engine must be a string", "colour is not a member", "rows[0].field must be one of waiting",
        "rows[1] must have a field", "rows[2] must be an object", "rows[3] needs value_label",
        "rows[3] needs combine newest", "pair 3 needs one row", "rows[5].where must be an object of strings",
        "rows[5] needs the name of a metric", "engine must not be empty"}) {
    EXPECT_NE(read.error().message.find(fault), std::string::npos) << fault << " in: " << read.error().message;
  }
  EXPECT_EQ(engine_table_from_json("[1]").code(), Code::not_an_object);
  EXPECT_EQ(engine_table_from_json("{").code(), Code::invalid_json);
  EXPECT_EQ(engine_table_from_json(std::string(300'000, ' ')).code(), Code::too_large);
  EngineMetricsParser parser;
  EXPECT_EQ(parser.set_table({}).code(), Code::invalid_argument);
  EXPECT_TRUE(parser.parse(kQueue).ok());  // as before
}

class EngineCountersOfATarget : public testing::Test {
 protected:
  // Reads pages of a vLLM rank with these counters.
  std::vector<EngineDelta> update(const std::string& hits, const std::string& queries, const std::string& more = "") {
    page_ = more + kQueue.data();
    if (!hits.empty()) page_ += "vllm:prefix_cache_hits_total{engine=\"0\"} " + hits + "\n";
    if (!queries.empty()) page_ += "vllm:prefix_cache_queries_total{engine=\"0\"} " + queries + "\n";
    const auto reading = parser_.parse(page_);
    EXPECT_TRUE(reading.ok());
    const auto deltas = counters_.update(*reading);
    return {deltas.begin(), deltas.end()};
  }
  std::string page_;
  EngineMetricsParser parser_;
  EngineCounters counters_;
};

TEST_F(EngineCountersOfATarget, GainsWhatCountersGained) {
  EXPECT_TRUE(update("10", "100").empty());
  const auto deltas = update("25", "160");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].prefix_hits, 15);
  EXPECT_EQ(deltas[0].prefix_queries, 60);
  EXPECT_FALSE(deltas[0].restarted);
  EXPECT_FALSE(deltas[0].first_tokens.has_value());
}

TEST_F(EngineCountersOfATarget, BridgesAReadingThatDoesNotSay) {
  update("10", "100");
  EXPECT_FALSE(update("NaN", "110")[0].prefix_hits.has_value());
  EXPECT_EQ(update("30", "150")[0].prefix_hits, 20);
}

TEST_F(EngineCountersOfATarget, SeesARestartInAnyCounter) {
  const std::string count = "vllm:time_to_first_token_seconds_count{engine=\"0\"} ";
  update("0", "0", count + "50\n");
  EXPECT_EQ(update("0", "0", count + "51\n")[0].first_tokens, 1);
  const auto deltas = update("0", "0", count + "2\n");
  EXPECT_TRUE(deltas[0].restarted);
  EXPECT_EQ(deltas[0].first_tokens, 2);
  EXPECT_FALSE(update("3", "9", count + "3\n")[0].restarted);
}

TEST(EngineCounters, FollowWhatRanksShareApartFromThem) {
  EngineCounters counters;
  const std::string page = test::page_of("sglang-0523-dp2");
  const Read before(page);
  EXPECT_TRUE(counters.update(*before).empty());
  const std::string total = "is_streaming=\"true\",model_name=\"harbour-70b\"} 90000.0";
  std::string later = page;
  ASSERT_NE(later.find(total), std::string::npos);
  later.replace(later.find(total), total.size(), "is_streaming=\"true\",model_name=\"harbour-70b\"} 90500.0");
  const Read after(later);
  const auto deltas = counters.update(*after);
  ASSERT_EQ(deltas.size(), 3u);
  EXPECT_FALSE(deltas[0].shared);
  EXPECT_FALSE(deltas[0].prefix_queries.has_value());  // ranks have no counters of their own
  EXPECT_TRUE(deltas[2].shared);
  EXPECT_EQ(deltas[2].prefix_queries, 500);
  EXPECT_EQ(deltas[2].prefix_hits, 0);
  EXPECT_EQ(deltas[2].first_tokens, 0);
}

TEST(EngineCounters, DoNotTakeAnotherUnitForARestart) {
  EngineCounters counters;
  const std::string blocks = "trtllm_kv_cache_reused_blocks_total 9000\ntrtllm_kv_cache_missed_blocks_total 10\n";
  const Read before(blocks);
  EXPECT_TRUE(counters.update(*before).empty());
  const Read tokens(blocks + "trtllm_prompt_cached_tokens_total 5\ntrtllm_prompt_tokens_total 50\n");
  const auto deltas = counters.update(*tokens);
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_FALSE(deltas[0].restarted);
  EXPECT_FALSE(deltas[0].prefix_hits.has_value());
}

class EngineReadingApplied : public testing::Test {
 protected:
  ReplicaId add(std::uint32_t rank) {
    ReplicaSpec spec;
    spec.name = "gpu";
    spec.dp_rank = rank;
    return *router_.add_replica(spec, Nanos{1});
  }
  LoadReading load(ReplicaId id) const {
    const RouterStatistics statistics = router_.statistics();
    for (const ReplicaStatistics& replica : statistics.replicas) {
      if (replica.id == id) return replica.load;
    }
    return {};
  }
  Router router_;
};

TEST_F(EngineReadingApplied, GivesEachRankToItsReplica) {
  std::vector<RankReplica> replicas;
  for (std::uint32_t rank = 0; rank < 4; ++rank) replicas.push_back({add(rank), rank, {}});
  const Read read(test::page_of("vllm-033-dp4"));
  const AppliedReading applied = apply_engine_reading(router_, *read, replicas, Nanos{50});
  EXPECT_EQ(applied.signals, 4 * (kSignalCount - 1));  // all but the tokens that wait
  EXPECT_EQ(applied.refused, 0u);
  EXPECT_EQ(applied.unmatched_ranks, 0u);
  EXPECT_EQ(load(replicas[1].id).foreign_requests, 39);  // 32 run, 7 wait
  EXPECT_EQ(load(replicas[1].id).signals_at, Nanos{50});
  EXPECT_EQ(load(replicas[2].id).foreign_requests, 0);
}

TEST_F(EngineReadingApplied, TellsTheTokensThatWaitWhereThePageDoes) {
  std::vector<RankReplica> replicas;
  for (std::uint32_t rank = 0; rank < 2; ++rank) replicas.push_back({add(rank), rank, {}});
  EXPECT_EQ(apply_engine_reading(router_, *Read(test::page_of("sglang-0523-dp2")), replicas, Nanos{50}).unmatched_ranks,
            0u);
  EXPECT_EQ(load(replicas[0].id).foreign_tokens, LoadBook::kUntold);
  EXPECT_EQ(apply_engine_reading(router_, *Read(test::page_of("sglang-v1-loads-dp2")), replicas, Nanos{60}).signals,
            8u);
  EXPECT_EQ(load(replicas[0].id).foreign_tokens, 18'304);
  EXPECT_EQ(load(replicas[0].id).foreign_requests, 17);
  EXPECT_EQ(load(replicas[1].id).foreign_tokens, 512);
  EXPECT_EQ(load(replicas[1].id).foreign_waiting, 0);
}

TEST_F(EngineReadingApplied, SendsNothingThatIsUnknown) {
  const ReplicaId id = add(0);
  const Read read(test::page_of("x-nan-inf"));
  const std::vector<RankReplica> replicas{{id, 1, {}}};
  const AppliedReading applied = apply_engine_reading(router_, *read, replicas, Nanos{50});
  EXPECT_EQ(applied.signals, 2u);  // waiting and usage of rank 1
  EXPECT_EQ(applied.unmatched_ranks, 1u);
}

TEST_F(EngineReadingApplied, GivesAPageWithoutRankToItsOnlyReplica) {
  const Read read(test::page_of("llamacpp-old"));
  const std::vector<RankReplica> one{{add(3), 3, {}}};
  EXPECT_EQ(apply_engine_reading(router_, *read, one, Nanos{50}).signals, 3u);
  const std::vector<RankReplica> two{one[0], {add(4), 4, {}}};
  const AppliedReading applied = apply_engine_reading(router_, *read, two, Nanos{50});
  EXPECT_EQ(applied.signals, 0u);
  EXPECT_EQ(applied.unmatched_ranks, 1u);
}

TEST_F(EngineReadingApplied, TakesAReplicaWithoutRankForTheOnlyOne) {
  const std::vector<RankReplica> any{{add(0), std::nullopt, {}}};
  EXPECT_EQ(apply_engine_reading(router_, *Read(test::page_of("vllm-033-external-lb-rank5")), any, Nanos{9}).signals,
            kSignalCount - 1);
  EXPECT_EQ(apply_engine_reading(router_, *Read(test::page_of("vllm-033-dp4")), any, Nanos{9}).unmatched_ranks, 4u);
}

TEST_F(EngineReadingApplied, GivesARankThatTwoReplicasClaimToNeither) {
  const std::vector<RankReplica> twice{{add(0), 0, {}}, {add(1), 0, {}}};
  const AppliedReading applied = apply_engine_reading(router_, *Read(std::string(kQueue)), twice, Nanos{9});
  EXPECT_EQ(applied.signals, 0u);
  EXPECT_EQ(applied.unmatched_ranks, 1u);
}

TEST_F(EngineReadingApplied, TellsModelsApart) {
  const Read read(test::page_of("triton-trtllm-two-models"));
  const std::vector<RankReplica> replicas{{add(0), std::nullopt, "alpha_llm"}, {add(1), 0, "beta_llm"}};
  EXPECT_EQ(apply_engine_reading(router_, *read, replicas, Nanos{50}).signals, 10u);
  EXPECT_EQ(load(replicas[0].id).foreign_requests, 3);
  EXPECT_EQ(load(replicas[1].id).foreign_requests, 13);
}

TEST_F(EngineReadingApplied, CountsWhatTheRouterRefuses) {
  const std::vector<RankReplica> replicas{{add(0), 0, {}}};
  ASSERT_TRUE(router_.remove_replica(replicas[0].id, Nanos{2}).ok());
  const AppliedReading applied = apply_engine_reading(router_, *Read(std::string(kQueue)), replicas, Nanos{50});
  EXPECT_EQ(applied.signals, 0u);
  EXPECT_EQ(applied.refused, 1u);
}

}  // namespace
}  // namespace warmroute
