// The numbers, names and defaults of warmroute_usage.h are those of the C++ interface.
#include <gtest/gtest.h>

#include <string>

#include "usage.hpp"
#include "warmroute.h"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/ledger.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/request_side.hpp"

namespace warmroute {
namespace {

#define SAME(c_name, cpp_value) static_assert(static_cast<long long>(c_name) == static_cast<long long>(cpp_value))

SAME(WR_ANSWER_AUTOMATIC, AnswerApi::automatic);
SAME(WR_ANSWER_OPENAI, AnswerApi::openai);
SAME(WR_ANSWER_RESPONSES, AnswerApi::responses);
SAME(WR_ANSWER_EMBEDDINGS, AnswerApi::embeddings);
SAME(WR_ANSWER_MESSAGES, AnswerApi::messages);
SAME(WR_ANSWER_GEMINI, AnswerApi::gemini);
SAME(WR_ANSWER_BEDROCK, AnswerApi::bedrock);
SAME(WR_ANSWER_COHERE, AnswerApi::cohere);
SAME(WR_ANSWER_LLAMACPP, AnswerApi::llamacpp);
SAME(WR_BELIEF_BY_RULE, Belief::by_rule);
SAME(WR_BELIEF_YES, Belief::yes);
SAME(WR_BELIEF_NO, Belief::no);
SAME(WR_USAGE_SOURCE_NONE, UsageSource::none);
SAME(WR_USAGE_SOURCE_PROVIDER, UsageSource::provider);
SAME(WR_USAGE_SOURCE_TIMINGS, UsageSource::timings);
SAME(WR_USAGE_SOURCE_ESTIMATE, UsageSource::estimate);
SAME(WR_ANOMALY_INVALID_COUNT, UsageAnomaly::invalid_count);
SAME(WR_ANOMALY_CACHED_EXCEEDS_INPUT, UsageAnomaly::cached_exceeds_input);
SAME(WR_ANOMALY_REASONING_EXCEEDS_OUTPUT, UsageAnomaly::reasoning_exceeds_output);
SAME(WR_ANOMALY_TOTAL_MISMATCH, UsageAnomaly::total_mismatch);
SAME(WR_ANOMALY_WRITE_SPLIT_EXCEEDS, UsageAnomaly::write_split_exceeds);
SAME(WR_ANOMALY_BAD_CRC, UsageAnomaly::bad_crc);
SAME(WR_ANOMALY_MALFORMED_EVENT, UsageAnomaly::malformed_event);
SAME(WR_ANOMALY_TOO_LARGE, UsageAnomaly::too_large);
SAME(WR_ANOMALY_COMPRESSED, UsageAnomaly::compressed);
SAME(WR_HANGUP_CUT, HangupMode::cut);
SAME(WR_HANGUP_DRAIN, HangupMode::drain);
SAME(WR_PRICE_TIER_STANDARD, PriceTier::standard);
SAME(WR_PRICE_TIER_PRIORITY, PriceTier::priority);
SAME(WR_PRICE_TIER_FLEX, PriceTier::flex);
SAME(WR_PRICE_TIER_BATCH, PriceTier::batch);
SAME(WR_PRICE_TIER_BALANCED, PriceTier::balanced);
SAME(WR_PRICE_TIER_ULTRAFAST, PriceTier::ultrafast);
SAME(WR_PRICE_METER_INPUT, PriceMeter::input);
SAME(WR_PRICE_METER_CACHED_INPUT, PriceMeter::cached_input);
SAME(WR_PRICE_METER_CACHE_WRITE, PriceMeter::cache_write);
SAME(WR_PRICE_METER_CACHE_WRITE_1H, PriceMeter::cache_write_1h);
SAME(WR_PRICE_METER_CACHE_WRITE_12H, PriceMeter::cache_write_12h);
SAME(WR_PRICE_METER_AUDIO_INPUT, PriceMeter::audio_input);
SAME(WR_PRICE_METER_CACHED_AUDIO_INPUT, PriceMeter::cached_audio_input);
SAME(WR_PRICE_METER_IMAGE_INPUT, PriceMeter::image_input);
SAME(WR_PRICE_METER_CACHED_IMAGE_INPUT, PriceMeter::cached_image_input);
SAME(WR_PRICE_METER_VIDEO_INPUT, PriceMeter::video_input);
SAME(WR_PRICE_METER_OUTPUT, PriceMeter::output);
SAME(WR_PRICE_METER_REASONING_OUTPUT, PriceMeter::reasoning_output);
SAME(WR_PRICE_METER_AUDIO_OUTPUT, PriceMeter::audio_output);
SAME(WR_PRICE_METER_IMAGE_OUTPUT, PriceMeter::image_output);
SAME(WR_PRICE_METER_WEB_SEARCH, PriceMeter::web_search);
SAME(WR_PRICE_METER_OTHER_MODEL, PriceMeter::other_model);
SAME(WR_COST_SOURCE_UNKNOWN, CostSource::unknown);
SAME(WR_COST_SOURCE_TABLE, CostSource::table);
SAME(WR_COST_SOURCE_SELF_HOSTED, CostSource::self_hosted);
SAME(WR_COST_SOURCE_REPORTED, CostSource::reported);
SAME(WR_KEY_DIGEST_HMAC_SHA256, KeyDigestKind::hmac_sha256);
SAME(WR_KEY_DIGEST_SHA256_SECRET, KeyDigestKind::sha256_secret);
SAME(WR_KEY_DIGEST_SHA256_KEY, KeyDigestKind::sha256_key);
SAME(WR_KEY_VERDICT_ACCEPTED, KeyVerdict::accepted);
SAME(WR_KEY_VERDICT_MALFORMED, KeyVerdict::malformed);
SAME(WR_KEY_VERDICT_UNKNOWN, KeyVerdict::unknown);
SAME(WR_KEY_VERDICT_WRONG_SECRET, KeyVerdict::wrong_secret);
SAME(WR_KEY_VERDICT_NOT_YET_VALID, KeyVerdict::not_yet_valid);
SAME(WR_KEY_VERDICT_EXPIRED, KeyVerdict::expired);
SAME(WR_KEY_VERDICT_REVOKED, KeyVerdict::revoked);
SAME(WR_KEY_VERDICT_STALE_SET, KeyVerdict::stale_set);
SAME(WR_KEY_VERDICT_NO_PEPPER, KeyVerdict::no_pepper);
SAME(WR_KEY_VERDICT_NO_DIGEST, KeyVerdict::no_digest);
SAME(WR_STALE_KEYS_KEEP_SERVING, StaleKeys::keep_serving);
SAME(WR_STALE_KEYS_REFUSE, StaleKeys::refuse);
SAME(WR_STALE_KEYS_REFUSE_NEW, StaleKeys::refuse_new);
SAME(WR_LIMIT_REQUESTS, LimitUnit::requests);
SAME(WR_LIMIT_INPUT_TOKENS, LimitUnit::input_tokens);
SAME(WR_LIMIT_OUTPUT_TOKENS, LimitUnit::output_tokens);
SAME(WR_LIMIT_TOTAL_TOKENS, LimitUnit::total_tokens);
SAME(WR_LIMIT_COST_NANOS, LimitUnit::cost_nanos);
SAME(WR_LIMIT_RATE, LimitKind::rate);
SAME(WR_LIMIT_BUDGET, LimitKind::budget);
SAME(WR_LIMIT_CONCURRENCY, LimitKind::concurrency);
SAME(WR_CALENDAR_MINUTE, CalendarUnit::minute);
SAME(WR_CALENDAR_HOUR, CalendarUnit::hour);
SAME(WR_CALENDAR_DAY, CalendarUnit::day);
SAME(WR_CALENDAR_WEEK, CalendarUnit::week);
SAME(WR_CALENDAR_MONTH, CalendarUnit::month);
SAME(WR_CALENDAR_YEAR, CalendarUnit::year);
SAME(WR_LIMIT_ALLOWED, LimitOutcome::allowed);
SAME(WR_LIMIT_RATE_EXCEEDED, LimitOutcome::rate_exceeded);
SAME(WR_LIMIT_TOO_MANY_AT_ONCE, LimitOutcome::too_many_at_once);
SAME(WR_LIMIT_BUDGET_EXCEEDED, LimitOutcome::budget_exceeded);
SAME(WR_LIMIT_LARGER_THAN_LIMIT, LimitOutcome::larger_than_limit);
SAME(WR_LIMIT_NO_ROOM, LimitOutcome::no_room);
SAME(WR_LIMIT_INVALID, LimitOutcome::invalid);
SAME(WR_ORPHANS_KEEP, OrphanCharge::keep);
SAME(WR_ORPHANS_REFUND, OrphanCharge::refund);
SAME(WR_JOURNAL_BEGIN, JournalKind::begin);
SAME(WR_JOURNAL_END, JournalKind::end);
SAME(WR_JOURNAL_INCOMPLETE, JournalKind::incomplete);
SAME(WR_JOURNAL_WITHDRAWN, JournalKind::withdrawn);
SAME(WR_JOURNAL_SYNC_NONE, JournalSync::none);
SAME(WR_JOURNAL_SYNC_BATCHED, JournalSync::batched);
SAME(WR_JOURNAL_SYNC_EACH, JournalSync::each);
SAME(WR_JOURNAL_REFUSE, JournalFull::refuse);
SAME(WR_JOURNAL_SERVE_UNBILLED, JournalFull::serve_unbilled);
SAME(WR_LEDGER_BY_NONE, LedgerBy::none);
SAME(WR_LEDGER_BY_KEY, LedgerBy::key);
SAME(WR_LEDGER_BY_TEAM, LedgerBy::team);
SAME(WR_LEDGER_BY_MODEL, LedgerBy::model);
SAME(WR_LEDGER_BY_REPLICA, LedgerBy::replica);
SAME(WR_LEDGER_BY_CLASS, LedgerBy::class_id);
SAME(WR_LEDGER_BY_WINDOW, LedgerBy::window);
SAME(WR_LEDGER_BY_ALL, kLedgerByAll);
SAME(WR_PRICE_METER_OTHER_MODEL + 1, kPriceMeterCount);
SAME(WR_ANOMALY_COMPRESSED, 1u << (kUsageAnomalyCount - 1));
SAME(WR_LIMIT_COST_NANOS + 1, kLimitUnitCount);
SAME(WR_NO_SCOPE, kNoScope);
static_assert(WR_REVOKED_FOREVER == kRevokedForever && WR_KEY_DIGEST_BYTES == sizeof(KeyDigest::bytes));
static_assert(WR_COST_LINE_SLOTS >= kPriceMeterCount && WR_LIMIT_UNIT_SLOTS >= kLimitUnitCount);

TEST(CUsageValues, HaveTheNamesOfTheCppOnes) {
  for (std::uint32_t i = 0; i < 600; ++i) {
    EXPECT_EQ(wr_price_meter_name(i), i < kPriceMeterCount ? price_meter_name(static_cast<PriceMeter>(i)) : "unknown");
    const bool verdict = i <= WR_KEY_VERDICT_NO_DIGEST;
    EXPECT_EQ(wr_key_verdict_name(i), verdict ? key_verdict_name(static_cast<KeyVerdict>(i)) : "unknown");
    EXPECT_EQ(wr_key_verdict_status(i),
              static_cast<unsigned>(verdict ? key_verdict_status(static_cast<KeyVerdict>(i)) : 503));
    EXPECT_EQ(wr_limit_status(i, 403),
              static_cast<unsigned>(i <= WR_LIMIT_INVALID ? limit_status(static_cast<LimitOutcome>(i), 403) : 500));
  }
  EXPECT_EQ(key_verdict_name(static_cast<KeyVerdict>(WR_KEY_VERDICT_NO_DIGEST + 1)),
            "other");  // none is missing in C
  for (std::size_t bit = 0; bit < 32; ++bit) EXPECT_EQ(wr_anomaly_name(1u << bit), usage_anomaly_name(bit));
  EXPECT_STREQ(wr_anomaly_name(0), "unknown");
  EXPECT_STREQ(wr_anomaly_name(3), "unknown");
  EXPECT_EQ(wr_focus_header(), focus_header());
  for (const std::string_view tier : {"", "priority", "flex", "batch", "ON_DEMAND_PRIORITY", "default"}) {
    EXPECT_EQ(wr_price_tier_of({tier.data(), tier.size()}), static_cast<std::uint32_t>(price_tier_of(tier))) << tier;
  }
}

TEST(CUsageValues, NoCountIsLostOnTheWayThereAndBack) {
  wr_usage_report c = WR_USAGE_REPORT_INIT;
  Usage usage;
  capi::read_counts(c, usage);
  EXPECT_EQ(usage, Usage{});  // all of them are unknown
  std::int64_t n = 0;
  for (std::int64_t* at = &c.input_tokens; at <= &c.reported_cost_picos; ++at) *at = ++n;
  EXPECT_EQ(n, 30);
  EXPECT_EQ(static_cast<std::size_t>(n) * sizeof(UsageCount), sizeof(Usage));
  capi::read_counts(c, usage);
  wr_usage_report back = WR_USAGE_REPORT_INIT;
  capi::fill_counts(back, usage);
  n = 0;
  for (const std::int64_t* at = &back.input_tokens; at <= &back.reported_cost_picos; ++at) EXPECT_EQ(*at, ++n);
  EXPECT_EQ(usage.cached_audio_input_tokens, 15);  // the order is C++'s
  EXPECT_EQ(usage.reported_cost_picos, 30);
}

TEST(CUsageValues, NothingOfAReportACostOrAnEventIsLost) {
  const OtherModelUsage other{"other", 1, {}, 3, 4};
  UsageReport r;
  r.complete = true;
  r.error = true;
  r.source = UsageSource::timings;
  r.anomalies.add(UsageAnomaly::bad_crc);
  r.output_events = 9;
  r.finish_reason = "stop";
  r.service_tier = "flex";
  r.speed = "fast";
  r.inference_geography = "eu";
  r.model = "m";
  r.response_id = "id";
  wr_usage_report c = WR_USAGE_REPORT_INIT;
  capi::fill_report(c, r);
  const wr_other_model_usage o{{"other", 5}, 1, WR_UNKNOWN, 3, 4, {}};
  c.other_models = &o;
  c.other_model_count = 1;
  UsageReport back;
  capi::OtherModels others;
  ASSERT_EQ(capi::read_report(&c, back, others, nullptr), WR_STATUS_OK);
  EXPECT_EQ(back.complete, r.complete);
  EXPECT_EQ(back.error, r.error);
  EXPECT_EQ(back.source, r.source);
  EXPECT_EQ(back.anomalies, r.anomalies);
  EXPECT_EQ(back.output_events, r.output_events);
  EXPECT_EQ(back.finish_reason, r.finish_reason);
  EXPECT_EQ(back.service_tier, r.service_tier);
  EXPECT_EQ(back.speed, r.speed);
  EXPECT_EQ(back.inference_geography, r.inference_geography);
  EXPECT_EQ(back.model, r.model);
  EXPECT_EQ(back.response_id, r.response_id);
  ASSERT_EQ(back.other_models.size(), 1u);
  EXPECT_EQ(back.other_models[0].model, other.model);
  EXPECT_EQ(back.other_models[0].input_tokens, other.input_tokens);
  EXPECT_EQ(back.other_models[0].cached_input_tokens, other.cached_input_tokens);
  EXPECT_EQ(back.other_models[0].cache_write_input_tokens, other.cache_write_input_tokens);
  EXPECT_EQ(back.other_models[0].output_tokens, other.output_tokens);
}

TEST(CUsageDefaults, AreThoseOfCpp) {
  const wr_meter_options meter = WR_METER_OPTIONS_INIT;
  EXPECT_EQ(meter.api, static_cast<std::uint32_t>(MeterOptions{}.api));
  EXPECT_EQ(meter.input_includes_cache, static_cast<std::uint32_t>(MeterProfile{}.input_includes_cache));
  EXPECT_EQ(meter.output_includes_reasoning, static_cast<std::uint32_t>(MeterProfile{}.output_includes_reasoning));
  EXPECT_EQ(meter.ignore_total + meter.trust_requested_tier, 0u);
  const wr_estimate_options estimate = WR_ESTIMATE_OPTIONS_INIT;
  EXPECT_EQ(estimate.max_output_tokens, EstimateOptions{}.max_output_tokens);
  EXPECT_EQ(estimate.margin_percent, EstimateOptions{}.margin_percent);
  const wr_hangup_policy hangup = WR_HANGUP_POLICY_INIT;
  EXPECT_EQ(hangup.mode, static_cast<std::uint32_t>(HangupPolicy{}.mode));
  EXPECT_EQ(hangup.max_drain_ns, HangupPolicy{}.max_drain.value);
  EXPECT_EQ(hangup.max_drain_bytes, HangupPolicy{}.max_drain_bytes);
  const wr_self_hosted_price own = WR_SELF_HOSTED_PRICE_INIT;
  EXPECT_EQ(own.utilization, SelfHostedPrice{}.utilization);
  const wr_key_digest digest = WR_KEY_DIGEST_INIT;
  EXPECT_EQ(digest.kind, static_cast<std::uint32_t>(KeyDigest{}.kind));
  EXPECT_EQ(digest.not_before_wall_ns, KeyDigest{}.not_before.value);
  EXPECT_EQ(digest.not_after_wall_ns, KeyDigest{}.not_after.value);
  const wr_keys_options keys = WR_KEYS_OPTIONS_INIT;
  EXPECT_EQ(keys.max_age_ns, KeySetOptions{}.max_age.value);
  EXPECT_EQ(keys.on_stale, static_cast<std::uint32_t>(KeySetOptions{}.on_stale));
}

TEST(CUsageDefaults, OfLimitsJournalsAndLedgersAreThoseOfCpp) {
  const wr_limit_spec c = WR_LIMIT_SPEC_INIT;
  const LimitSpec cpp;
  EXPECT_EQ(c.kind, static_cast<std::uint32_t>(cpp.kind));
  EXPECT_EQ(c.unit, static_cast<std::uint32_t>(cpp.unit));
  EXPECT_EQ(c.amount, cpp.amount);
  EXPECT_EQ(c.period_ns, cpp.period.value);
  EXPECT_EQ(c.burst, cpp.burst);
  EXPECT_EQ(c.calendar_unit, static_cast<std::uint32_t>(cpp.window.unit));
  EXPECT_EQ(c.calendar_count, static_cast<std::uint32_t>(cpp.window.count));
  EXPECT_EQ(c.anchor_local_seconds, cpp.window.anchor_local_seconds);
  EXPECT_EQ(c.cached_weight_permille, static_cast<std::uint32_t>(cpp.cached_weight_permille));
  EXPECT_EQ(c.shadow + c.hard_stop, 0u);
  const wr_limits_options limits = WR_LIMITS_OPTIONS_INIT;
  EXPECT_EQ(limits.lease_ns, LimitOptions{}.lease.value);
  EXPECT_EQ(limits.orphans, static_cast<std::uint32_t>(LimitOptions{}.orphans));
  EXPECT_EQ(limits.max_scopes, LimitOptions{}.max_scopes);
  EXPECT_EQ(limits.max_reservations, LimitOptions{}.max_reservations);
  EXPECT_EQ(limits.concurrency_retry_ns, LimitOptions{}.concurrency_retry.value);
  const wr_limit_decision decision = WR_LIMIT_DECISION_INIT;
  EXPECT_EQ(decision.retry_after_ns, LimitDecision{}.retry_after.value);
  EXPECT_EQ(decision.reset_ns, LimitDecision{}.reset.value);
  for (const wr_limit_left& left : decision.left) EXPECT_EQ(left.amount, LimitLeft{}.amount);
  const wr_journal_options journal = WR_JOURNAL_OPTIONS_INIT;
  EXPECT_EQ(journal.sync, static_cast<std::uint32_t>(JournalOptions{}.sync));
  EXPECT_EQ(journal.on_full, static_cast<std::uint32_t>(JournalOptions{}.on_full));
  EXPECT_EQ(journal.sync_bytes, JournalOptions{}.sync_bytes);
  EXPECT_EQ(journal.segment_bytes, JournalOptions{}.segment_bytes);
  EXPECT_EQ(journal.max_bytes, JournalOptions{}.max_bytes);
  EXPECT_EQ(journal.max_held_ends, JournalOptions{}.max_held_ends);
  const wr_ledger_options ledger = WR_LEDGER_OPTIONS_INIT;
  EXPECT_EQ(ledger.by, static_cast<std::uint32_t>(LedgerOptions{}.by));
  EXPECT_EQ(ledger.window_ns, LedgerOptions{}.window.value);
  EXPECT_EQ(ledger.max_rows, LedgerOptions{}.max_rows);
  EXPECT_EQ(ledger.reprice != 0, LedgerOptions{}.reprice);
}

}  // namespace
}  // namespace warmroute
