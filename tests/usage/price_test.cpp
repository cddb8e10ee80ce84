// Costs: what LiteLLM makes of made-up tables, the names of rates, and where money must not get lost.
#include "warmroute/usage/price.hpp"
#include "support/scratch.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

namespace warmroute {
namespace {

constexpr std::int64_t kMicroUsd = 1'000'000;  // in picos

/// A table of one model, "m", with these members.
PriceTable table_of(const std::string& members) {
  auto table = PriceTable::from_json(R"({"sample_spec":{"input_cost_per_token":9},"m":{)" + members + "}}");
  EXPECT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->size(), 1u);
  return std::move(*table);
}

UsageReport used(std::int64_t input, std::int64_t cached, std::int64_t output) {
  UsageReport report;
  report.model = "m";
  report.usage.input_tokens = input;
  report.usage.output_tokens = output;
  if (cached >= 0) report.usage.cached_input_tokens = cached;
  return report;
}

std::int64_t picos(const std::string& members, const UsageReport& report, const PriceOptions& options = {}) {
  const PriceTable table = table_of(members);
  const Cost cost = table.cost(report, {}, options);
  EXPECT_TRUE(cost.picos.has_value());
  std::int64_t lines = 0;
  for (const CostLine& line : cost.bill()) lines += line.cost_picos;
  EXPECT_NEAR(static_cast<double>(lines), static_cast<double>(cost.picos.value_or(0)), cost.line_count);
  return cost.picos.value_or(-1);
}

const char* const kBasic =
    R"("input_cost_per_token":2e-6,"output_cost_per_token":8e-6,"cache_read_input_token_cost":5e-7)";

TEST(Price, CachedTokensHaveTheirOwnRate) { EXPECT_EQ(picos(kBasic, used(1000, 600, 100)), 1'900 * kMicroUsd); }

TEST(Price, ATierFallsBackToTheStandardRateWhereItHasNone) {
  UsageReport report = used(1000, 600, 100);
  report.service_tier = "priority";
  const std::string members =
      std::string(kBasic) + R"(,"input_cost_per_token_priority":4e-6,"output_cost_per_token_priority":16e-6)";
  EXPECT_EQ(picos(members, report), 3'500 * kMicroUsd);
  report.service_tier = "ON_DEMAND_PRIORITY";
  EXPECT_EQ(picos(members, report), 3'500 * kMicroUsd);
  UsageReport flex = used(1000, -1, 10);
  flex.service_tier = "flex";
  const PriceTable table = table_of(R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6)");
  const Cost cost = table.cost(flex);
  EXPECT_EQ(cost.picos, UsageCount(1'020 * kMicroUsd));
  EXPECT_TRUE(cost.tier_fell_back);
  PriceOptions options;
  options.tier = PriceTier::batch;
  EXPECT_EQ(picos(R"("input_cost_per_token":1e-6,"input_cost_per_token_batches":5e-7,"output_cost_per_token":2e-6,)"
                  R"("output_cost_per_token_batches":1e-6)",
                  flex, options),
            510 * kMicroUsd);
}

const char* const kThreshold =
    R"("input_cost_per_token":1e-6,"output_cost_per_token":4e-6,"cache_read_input_token_cost":1e-7,)"
    R"("input_cost_per_token_above_200k_tokens":2e-6,"output_cost_per_token_above_200k_tokens":6e-6,)"
    R"("cache_read_input_token_cost_above_200k_tokens":2e-7)";

TEST(Price, AboveAThresholdTheWholeRequestIsPricedAnew) {
  EXPECT_EQ(picos(kThreshold, used(200'000, 50'000, 10)), 155'040 * kMicroUsd) << "strictly above";
  EXPECT_EQ(picos(kThreshold, used(200'001, 50'000, 10)), 310'062 * kMicroUsd);
  EXPECT_EQ(picos(std::string(kThreshold) + R"(,"litellm_provider":"xai")", used(200'000, 50'000, 10)),
            310'060 * kMicroUsd)
      << "at the threshold already";
  // The highest one that is passed; a tier's own rate above it, and standard ones else.
  UsageReport report = used(300'000, -1, 1'000);
  report.service_tier = "priority";
  EXPECT_EQ(picos(std::string(kThreshold) + R"(,"input_cost_per_token_above_256k_tokens":3e-6,)"
                                            R"("input_cost_per_token_above_256k_tokens_priority":5e-6)",
                  report),
            1'504'000 * kMicroUsd);
}

const char* const kWrites =
    R"("input_cost_per_token":3e-6,"output_cost_per_token":15e-6,"cache_creation_input_token_cost":3.75e-6,)"
    R"("cache_creation_input_token_cost_above_1hr":6e-6,"cache_read_input_token_cost":3e-7)";

TEST(Price, WritesArePricedByLifetimeAndWhatIsLeftOverAtTheBaseRate) {
  UsageReport report = used(1100, 400, 10);
  report.usage.cache_write_input_tokens = 500;
  report.usage.cache_write_5m_tokens = 200;
  report.usage.cache_write_1h_tokens = 300;
  EXPECT_EQ(picos(kWrites, report), 3'420 * kMicroUsd);
  report.usage.cache_write_5m_tokens = 0;
  EXPECT_EQ(picos(kWrites, report), 3'420 * kMicroUsd);
  report.usage.cache_write_1h_tokens = std::nullopt;
  report.usage.cache_write_12h_tokens = 300;
  EXPECT_EQ(picos(kWrites, report), 3'420 * kMicroUsd) << "no rate for 12 hours: the next shorter one";
  EXPECT_EQ(picos(std::string(kWrites) + R"(,"cache_creation_input_token_cost_above_12hr":9e-6)", report),
            4'320 * kMicroUsd);
}

TEST(Price, WithoutCacheRatesCachedTokensAreInput) {
  EXPECT_EQ(picos(R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6)", used(1000, 600, 0)),
            1'000 * kMicroUsd);
  EXPECT_EQ(picos(R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"input_cost_per_token_cache_hit":1e-7)",
                  used(1000, 600, 0)),
            460 * kMicroUsd);
}

const char* const kModal =
    R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"cache_read_input_token_cost":0,)"
    R"("output_cost_per_reasoning_token":3e-6,"input_cost_per_audio_token":1e-5)";

TEST(Price, ZeroIsAPriceAndReasoningAndAudioArePricedInsteadNotBeside) {
  UsageReport report = used(1000, 600, 200);
  report.usage.audio_input_tokens = 100;
  report.usage.reasoning_output_tokens = 150;
  EXPECT_EQ(picos(kModal, report), 1'850 * kMicroUsd);
  report.usage.audio_input_tokens = 700;  // 300 of them must be cached
  EXPECT_EQ(picos(kModal, report), 4'550 * kMicroUsd);
  report.usage.audio_input_tokens = 100;
  report.usage.cached_audio_input_tokens = 100;
  EXPECT_EQ(picos(std::string(kModal) + R"(,"cache_read_input_audio_token_cost":1e-6)", report), 1'050 * kMicroUsd);
}

TEST(Price, BandsPriceTheWholeRequest) {
  const std::string members =
      R"("output_cost_per_token":9e-6,"tiered_pricing":[{"range":[32000,128000],"input_cost_per_token":2e-6,)"
      R"("output_cost_per_token":6e-6},{"range":[0,32000],"input_cost_per_token":1e-6,"cache_read_input_token_cost":1e-7}])";
  EXPECT_EQ(picos(members, used(32'000, 1'000, 10)), (31'000 + 100 + 90) * kMicroUsd);
  EXPECT_EQ(picos(members, used(32'001, 1'000, 10)), (64'002 + 60) * kMicroUsd)
      << "no cache rate in the band: its input rate";
  EXPECT_EQ(picos(members, used(500'000, 0, 10)), (1'000'000 + 60) * kMicroUsd) << "above all: the last";
}

TEST(Price, OffPeakIsForTheCallerToTell) {
  const std::string members =
      R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"off_peak_pricing":{"hours_utc":"16:30-00:30","input_cost_per_token":5e-7})";
  PriceOptions options;
  EXPECT_EQ(picos(members, used(100, -1, 10), options), 120 * kMicroUsd);
  options.off_peak = true;
  EXPECT_EQ(picos(members, used(100, -1, 10), options), 70 * kMicroUsd);
}

TEST(Price, SpeedAndRegionMultiply) {
  UsageReport report = used(100, -1, 10);
  const std::string members =
      R"("input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"provider_specific_entry":{"fast":6.0,"us":1.1})";
  EXPECT_EQ(picos(members, report), 120 * kMicroUsd);
  report.speed = "fast";
  EXPECT_EQ(picos(members, report), 720 * kMicroUsd);
  report.inference_geography = "us";
  EXPECT_EQ(picos(members, report), 792 * kMicroUsd);
}

TEST(Price, UnknownIsNeverZero) {
  const PriceTable table = table_of(kBasic);
  UsageReport report = used(10, 0, 10);
  report.model = "somebody-else";
  EXPECT_EQ(table.cost(report).picos, std::nullopt);
  EXPECT_EQ(table.cost(report).source, CostSource::unknown);
  report.usage.reported_cost_picos = 7;
  EXPECT_EQ(table.cost(report).picos, UsageCount(7));
  EXPECT_EQ(table.cost(report).source, CostSource::reported);
  report = used(10, 0, 10);
  report.usage.output_tokens = std::nullopt;
  EXPECT_EQ(table.cost(report).picos, std::nullopt);
  EXPECT_EQ(table.cost(report).price_key, "m");
  const PriceTable no_output = table_of(R"("input_cost_per_token":1e-6)");
  EXPECT_EQ(no_output.cost(used(10, 0, 10)).picos, std::nullopt);
  EXPECT_EQ(no_output.cost(used(10, 0, 0)).picos, UsageCount(10 * kMicroUsd)) << "embeddings have no output";
}

TEST(Price, TheReportedCostWinsWhereThatIsWanted) {
  UsageReport report = used(1000, 600, 100);
  report.usage.reported_cost_picos = 3;
  PriceOptions options;
  EXPECT_EQ(table_of(kBasic).cost(report, {}, options).source, CostSource::table);
  options.prefer_reported_cost = true;
  EXPECT_EQ(table_of(kBasic).cost(report, {}, options).picos, UsageCount(3));
}

TEST(Price, ToolRequestsAndOtherModelsAreLinesOfTheirOwn) {
  auto table = PriceTable::from_json(
      R"({"m":{"input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"search_context_cost_per_query":)"
      R"({"search_context_size_low":0.01,"search_context_size_medium":0.02}},"a":{"input_cost_per_token":5e-6,"output_cost_per_token":5e-6}})");
  ASSERT_TRUE(table);
  UsageReport report = used(100, -1, 10);
  report.usage.web_search_requests = 3;
  EXPECT_EQ(table->cost(report).picos, UsageCount(60'120 * kMicroUsd));
  report.usage.web_search_requests = std::nullopt;
  OtherModelUsage other[2];
  other[0].model = "a";
  other[0].input_tokens = 30;
  other[0].output_tokens = 10;
  report.other_models = {other, 1};
  const Cost cost = table->cost(report);
  EXPECT_EQ(cost.picos, UsageCount(320 * kMicroUsd));
  EXPECT_FALSE(cost.partial);
  EXPECT_EQ(cost.bill().back().meter, PriceMeter::other_model);
  EXPECT_EQ(cost.bill().back().rate_femtos, 5'000'000'000);
  other[1].model = "nobody";
  report.other_models = {other, 2};
  EXPECT_TRUE(table->cost(report).partial);
  report.other_models = {};
  report.usage.unattributed_tokens = 4;
  EXPECT_TRUE(table->cost(report).partial);
}

TEST(Price, RatesLoseTheNoiseOfTheirDoubles) {
  EXPECT_EQ(
      picos(R"("input_cost_per_token":1.0000000000000001e-07,"output_cost_per_token":"3e-7")", used(1'000'000, -1, 1)),
      100'000 * kMicroUsd + 300'000);
  EXPECT_EQ(picos(R"("input_cost_per_token":1.3e-10,"output_cost_per_token":0)", used(3, -1, 1)), 390);
  // 64 bits would overflow on the way.
  EXPECT_EQ(picos(R"("input_cost_per_token":1e-6,"output_cost_per_token":0)", used(5'000'000'000, -1, 0)),
            5'000'000'000 * kMicroUsd);
  const PriceTable table = table_of(R"("input_cost_per_token":1000,"output_cost_per_token":0)");
  EXPECT_EQ(table.cost(used(1'000'000'000'000'000'000, -1, 0)).picos, std::nullopt) << "beyond 9 million USD";
}

TEST(Price, SumsAreThoseOfExactArithmetic) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2'000; ++round) {
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    const std::int64_t in = below(40'000), out = below(40'000), read = below(in + 1),
                       write = below(50'000);  // 1e-9 USD
    char members[256];
    std::snprintf(members, sizeof members,
                  R"("input_cost_per_token":%.10e,"output_cost_per_token":%.10e,"cache_read_input_token_cost":%.10e,)"
                  R"("cache_creation_input_token_cost":%.10e)",
                  static_cast<double>(in) * 1e-9, static_cast<double>(out) * 1e-9, static_cast<double>(read) * 1e-9,
                  static_cast<double>(write) * 1e-9);
    UsageReport report = used(1 + below(1'000'000), 0, below(100'000));
    report.usage.cached_input_tokens = below(*report.usage.input_tokens);
    report.usage.cache_write_input_tokens = below(*report.usage.input_tokens - *report.usage.cached_input_tokens + 1);
    EXPECT_EQ(picos(members, report),
              1'000 * (*report.usage.uncached_input_tokens() * in + *report.usage.cached_input_tokens * read +
                       *report.usage.cache_write_input_tokens * write + *report.usage.output_tokens * out));
  }
}

TEST(Price, NeverPricesATokenTwice) {
  // All rates alike: whatever is said of the parts, even nonsense, the sum is that of the sides.
  const std::string members =
      R"("input_cost_per_token":1e-6,"output_cost_per_token":1e-6,"cache_read_input_token_cost":1e-6,)"
      R"("cache_creation_input_token_cost":1e-6,"cache_creation_input_token_cost_above_1hr":1e-6,"input_cost_per_audio_token":1e-6,)"
      R"("input_cost_per_image_token":1e-6,"input_cost_per_video_token":1e-6,"cache_read_input_audio_token_cost":1e-6,)"
      R"("output_cost_per_reasoning_token":1e-6,"output_cost_per_audio_token":1e-6,"output_cost_per_image_token":1e-6)";
  const PriceTable table = table_of(members);
  std::mt19937_64 random(5);
  const auto any = [&]() -> UsageCount {
    return random() % 3 == 0 ? UsageCount{} : UsageCount(static_cast<std::int64_t>(random() % 100));
  };
  for (int round = 0; round < 5'000; ++round) {
    UsageReport report = used(static_cast<std::int64_t>(random() % 100), -1, static_cast<std::int64_t>(random() % 100));
    Usage& usage = report.usage;
    for (UsageCount* part : {&usage.cached_input_tokens, &usage.cache_write_input_tokens, &usage.cache_write_1h_tokens,
                             &usage.cache_write_12h_tokens, &usage.audio_input_tokens, &usage.image_input_tokens,
                             &usage.video_input_tokens, &usage.cached_audio_input_tokens,
                             &usage.cached_image_input_tokens, &usage.cached_video_input_tokens,
                             &usage.reasoning_output_tokens, &usage.audio_output_tokens, &usage.image_output_tokens})
      *part = any();
    ASSERT_EQ(table.cost(report).picos, UsageCount((*usage.input_tokens + *usage.output_tokens) * kMicroUsd));
  }
}

// ---------------------------------------------------------------- names

TEST(Price, FindsModelsByTheNamesProvidersUse) {
  auto table = PriceTable::from_json(
      R"({"gpt-x":{"input_cost_per_token":1},"azure/gpt-x":{"input_cost_per_token":2},"anthropic.claude-y-v1:0":{},)"
      R"("claude-z":{},"gemini-w":{},"openrouter/a/b":{},"gpt-x-2025-01-01":{}})");
  ASSERT_TRUE(table);
  const auto name = [&](std::string_view model, std::string_view provider = {}) {
    return std::string(table->find(model, provider).value_or("-"));
  };
  EXPECT_EQ(name("gpt-x"), "gpt-x");
  EXPECT_EQ(name("gpt-x", "azure"), "gpt-x") << "the exact name first";
  EXPECT_EQ(name("a/b", "openrouter"), "openrouter/a/b");
  EXPECT_EQ(name("gpt-x-2025-01-01"), "gpt-x-2025-01-01");
  EXPECT_EQ(name("gpt-x-2026-02-03"), "gpt-x");
  EXPECT_EQ(name("openai/gpt-x-2026-02-03"), "gpt-x");
  EXPECT_EQ(name("us.anthropic.claude-y-v1:0"), "anthropic.claude-y-v1:0");
  EXPECT_EQ(name("claude-z-20260131"), "claude-z");
  EXPECT_EQ(name("claude-z@20260131"), "claude-z");
  EXPECT_EQ(name("claude-z-latest"), "claude-z");
  EXPECT_EQ(name("models/gemini-w-001"), "gemini-w");
  for (const char* unknown : {"", "gpt", "gpt-x-mini", "claude-z-20260", "/", "us."})
    EXPECT_EQ(name(unknown), "-") << unknown;
}

TEST(Price, AliasesAreTheLastResortAndLeadNowhereTwice) {
  PriceTable table = table_of(kBasic);
  ASSERT_TRUE(table.set_alias("mine", "m"));
  ASSERT_TRUE(table.set_alias("ours", "mine"));
  EXPECT_EQ(table.find("ours"), std::string_view("m"));
  ASSERT_TRUE(table.set_alias("m", "nobody"));
  EXPECT_EQ(table.find("m"), std::string_view("m"));
  EXPECT_EQ(table.set_alias("", "m").code(), Code::invalid_argument);
  EXPECT_EQ(table.set_alias("mine", "ours").code(), Code::invalid_argument);
  EXPECT_EQ(table.set_alias("x", "x").code(), Code::invalid_argument);
}

TEST(Price, OverridesReplaceMembersOrNothing) {
  PriceTable table = table_of(kBasic);
  const std::string before = table.version();
  ASSERT_TRUE(table.override_with(
      R"({"m":{"input_cost_per_token":1e-6,"cache_read_input_token_cost":null},"n":{"input_cost_per_token":0,"output_cost_per_token":0}})"));
  EXPECT_NE(table.version(), before);
  EXPECT_EQ(table.cost(used(1000, 600, 100)).picos, UsageCount(1'800 * kMicroUsd));
  EXPECT_EQ(table.cost(used(5, 0, 5), "n").picos, UsageCount(0)) << "free is known";
  const Status refused = table.override_with(
      R"({"m":{"input_cost_per_token":9e-6,"output_cost_per_token":-1},"n":{"input_cost_per_token":"dear"}})");
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.error().message.find("m.output_cost_per_token"), std::string::npos);
  EXPECT_NE(refused.error().message.find("n.input_cost_per_token"), std::string::npos);
  EXPECT_EQ(table.cost(used(1000, 600, 100)).picos, UsageCount(1'800 * kMicroUsd));
}

TEST(Price, RefusesWhatIsNoPriceFileAndSkipsWhatIsNoRate) {
  EXPECT_EQ(PriceTable::from_json("{").code(), Code::invalid_json);
  EXPECT_EQ(PriceTable::from_json("[]").code(), Code::not_an_object);
  EXPECT_EQ(PriceTable::load("/no/such/file").code(), Code::io);
  EXPECT_EQ(PriceTable::load(WARMROUTE_TEST_DATA "/price_tables.jsonl").code(), Code::invalid_json)
      << "several files in one";
  auto table = PriceTable::from_json(
      R"({"a":7,"m":{"mode":"chat","input_cost_per_token":1e-6,"output_cost_per_token":true,"cache_read_input_token_cost":-1,)"
      R"("input_cost_per_second":{},"tiered_pricing":[{"range":[1]}],"output_cost_per_token_above_xk_tokens":1}})");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 1u);
  EXPECT_EQ(table->skipped_rates(), 3u);
}

TEST(Price, LoadsAFile) {
  const std::string path = test::scratch_path("prices.json");
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  const std::string padding(100'000, ' ');  // more than one read
  const std::string json = R"({"m":{"input_cost_per_token":1e-6,)" + padding + R"("output_cost_per_token":2e-6}})";
  EXPECT_EQ(std::fwrite(json.data(), 1, json.size(), file), json.size());
  std::fclose(file);
  const auto table = PriceTable::load(path);
  std::remove(path.c_str());
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->cost(used(100, -1, 10)).picos, UsageCount(120 * kMicroUsd));
  EXPECT_EQ(table->version(), PriceTable::from_json(json)->version());
}

TEST(Price, OwnReplicasCostWhatTheirHoursCost) {
  PriceTable table;
  SelfHostedPrice price;
  price.model = "m";
  price.replica_hour_picos = 3'600'000 * kMicroUsd;  // 3.6 USD an hour
  price.input_tokens_per_second = 10'000;
  price.output_tokens_per_second = 1'000;
  ASSERT_TRUE(table.set_self_hosted(price));
  // 400 uncached tokens are 0.04 s, 100 of output 0.1 s, of 1,000 micro-USD each.
  const Cost cost = table.cost(used(1000, 600, 100));
  EXPECT_EQ(cost.picos, UsageCount(140 * kMicroUsd));
  EXPECT_EQ(cost.source, CostSource::self_hosted);
  price.utilization = 0.5;
  price.cached_tokens_per_second = 100'000;
  ASSERT_TRUE(table.set_self_hosted(price));
  EXPECT_EQ(table.cost(used(1000, 600, 100)).picos, UsageCount(2 * (140 + 6) * kMicroUsd));
  price.utilization = 0;
  price.output_tokens_per_second = 0;
  const Status refused = table.set_self_hosted(price);
  EXPECT_NE(refused.error().message.find("utilization"), std::string::npos);
  EXPECT_NE(refused.error().message.find("output_tokens_per_second"), std::string::npos);
}

}  // namespace
}  // namespace warmroute
