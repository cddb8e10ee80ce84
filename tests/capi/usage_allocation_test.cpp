// Hot calls of warmroute_usage.h allocate nothing once warm (with allocation_test.cpp: operator new is counted).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/counting_new.hpp"
#include "warmroute.h"

namespace {

using warmroute::test::allocations;

constexpr std::int64_t kWall = 1'800'000'000'000'000'000;
wr_str bytes_of(const std::string& s) { return {s.data(), s.size()}; }

// Rounds that warm up, then rounds that are counted.
template <class Round>
std::size_t allocations_in(Round&& round) {
  for (int i = 0; i < 20; ++i) round();
  const std::size_t before = allocations();
  for (int i = 0; i < 20; ++i) round();
  return allocations() - before;
}

TEST(CUsageAllocation, IsZeroFromTheFirstByteToTheCost) {
  const std::string prices = R"({"m":{"input_cost_per_token":1e-6,"output_cost_per_token":4e-6}})";
  const std::string chunk = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
  const std::string last =
      "data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: "
      "[DONE]\n\n";
  wr_meter* meter = nullptr;
  wr_price_table* table = nullptr;
  wr_usage_chunk_filter* filter = nullptr;
  ASSERT_EQ(wr_meter_new(nullptr, &meter, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_price_table_from_json(bytes_of(prices), &table, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_usage_chunk_filter_new(&filter, nullptr), WR_STATUS_OK);
  bool fine = true;
  EXPECT_EQ(allocations_in([&] {
              std::uint32_t first = 0;
              wr_str out = WR_STR_INIT;
              wr_usage_report report = WR_USAGE_REPORT_INIT;
              wr_cost cost = WR_COST_INIT;
              fine &= wr_meter_reset(meter, nullptr, nullptr) == WR_STATUS_OK;
              for (int i = 0; i < 3; ++i) {
                fine &= wr_meter_feed(meter, bytes_of(chunk), &first) == WR_STATUS_OK;
                fine &= first == (i == 0 ? 1u : 0u);
                fine &= wr_usage_chunk_filter_feed(filter, bytes_of(chunk), &out, nullptr) == WR_STATUS_OK;
              }
              fine &= wr_meter_feed(meter, bytes_of(last), &first) == WR_STATUS_OK;
              fine &= wr_usage_chunk_filter_feed(filter, bytes_of(last), &out, nullptr) == WR_STATUS_OK;
              fine &= wr_usage_chunk_filter_removed(filter) == 1;
              wr_usage_chunk_filter_reset(filter);
              fine &= wr_meter_finish(meter) == WR_STATUS_OK;
              fine &= wr_meter_report(meter, &report, nullptr) == WR_STATUS_OK;
              fine &= wr_price_table_cost(table, &report, {nullptr, 0}, nullptr, &cost, nullptr) == WR_STATUS_OK;
              fine &= cost.picos == 9 * 1'000'000 + 2 * 4'000'000;
            }),
            0u);
  EXPECT_TRUE(fine);
  wr_usage_chunk_filter_free(filter);
  wr_price_table_free(table);
  wr_meter_free(meter);
}

TEST(CUsageAllocation, IsZeroOnKeysLimitsAndEstimates) {
  const std::string key = "sk-abc-secretsecretsecret", pepper = "a pepper of more than 16 bytes", id = "abc";
  wr_keys* keys = nullptr;
  wr_key_lookup* lookup = nullptr;
  wr_limits* limits = nullptr;
  wr_token_estimator* estimator = nullptr;
  wr_key_digest digest = WR_KEY_DIGEST_INIT;
  wr_key_record record = WR_KEY_RECORD_INIT;
  wr_limit_spec spec = WR_LIMIT_SPEC_INIT;
  wr_scope scope = WR_NO_SCOPE;
  ASSERT_EQ(wr_keys_new(nullptr, &keys, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_keys_add_pepper(keys, 1, bytes_of(pepper), nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_key_digest_of(bytes_of(key), 0, 1, bytes_of(pepper), &digest, nullptr), WR_STATUS_OK);
  record.public_id = record.team_id = bytes_of(id);
  record.digests = &digest;
  record.digest_count = 1;
  ASSERT_EQ(wr_keys_replace(keys, 1, &record, 1, sizeof record, 0, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_key_lookup_new(&lookup, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_limits_new(nullptr, &limits, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_limits_scope(limits, bytes_of(id), bytes_of(id), &scope, nullptr), WR_STATUS_OK);
  spec.name = bytes_of(id);
  spec.amount = 1'000'000;
  ASSERT_EQ(wr_limits_set(limits, scope, &spec, 1, sizeof spec, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_token_estimator_new(&estimator, nullptr), WR_STATUS_OK);
  bool fine = true;
  std::int64_t now = 1;
  const std::size_t counted = allocations_in([&] {
    wr_key_grant grant = WR_KEY_GRANT_INIT;
    wr_estimate_options asked = WR_ESTIMATE_OPTIONS_INIT;
    wr_token_estimate estimate = WR_TOKEN_ESTIMATE_INIT;
    wr_limit_use use = WR_LIMIT_USE_INIT;
    wr_limit_decision d = WR_LIMIT_DECISION_INIT;
    std::uint32_t stop = 0;
    asked.prompt_bytes = 900;
    fine &= wr_token_estimator_estimate(estimator, &asked, &estimate, nullptr) == WR_STATUS_OK;
    use.input_tokens = estimate.input_tokens;
    fine &= wr_limits_reserve(limits, &scope, 1, &use, ++now, kWall, &d, nullptr) == WR_STATUS_OK;
    fine &= d.outcome == WR_LIMIT_ALLOWED;
    fine &= wr_limits_progress(limits, d.ticket, &use, ++now, kWall, &stop) == WR_STATUS_OK;
    fine &= wr_limits_extend(limits, d.ticket, ++now) == WR_STATUS_OK;
    fine &= wr_limits_settle(limits, d.ticket, &use, ++now, kWall) == WR_STATUS_OK;
    fine &= wr_limits_reserve(limits, &scope, 1, &use, ++now, kWall, &d, nullptr) == WR_STATUS_OK;
    fine &= wr_limits_release(limits, d.ticket, ++now, kWall) == WR_STATUS_OK;
    if (warmroute::test::counts_malloc()) return;
    fine &= wr_keys_check(keys, lookup, bytes_of(key), now, kWall, &grant, nullptr) == WR_STATUS_OK;
    fine &= grant.verdict == WR_KEY_VERDICT_ACCEPTED;
  });
  EXPECT_EQ(counted, 0u);
  EXPECT_TRUE(fine);
  wr_token_estimator_free(estimator);
  wr_limits_free(limits);
  wr_key_lookup_free(lookup);
  wr_keys_free(keys);
}

}  // namespace
