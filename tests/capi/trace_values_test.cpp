// The numbers, names and defaults of warmroute_trace.h are those of the C++ interface; also of what pairs and learned rates are told in.
#include <gtest/gtest.h>

#include <string>

#include "warmroute.h"
#include "warmroute/route/disaggregate.hpp"
#include "warmroute/trace/decision_log.hpp"
#include "warmroute/trace/decision_recorder.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {
namespace {

static_assert(WR_TRACE_AUTOMATIC == static_cast<int>(TraceFormat::automatic));
static_assert(WR_TRACE_MOONCAKE == static_cast<int>(TraceFormat::mooncake));
static_assert(WR_TRACE_QWEN == static_cast<int>(TraceFormat::qwen));
static_assert(WR_TRACE_BURSTGPT == static_cast<int>(TraceFormat::burstgpt));
static_assert(WR_TRACE_AZURE == static_cast<int>(TraceFormat::azure));
static_assert(WR_TRACE_RAGPULSE == static_cast<int>(TraceFormat::ragpulse));
static_assert(WR_TRACE_WEKA == static_cast<int>(TraceFormat::weka));
static_assert(kTraceFormatNames.size() == WR_TRACE_WEKA + 1);
static_assert(WR_CALL_SET_POLICY == static_cast<int>(DecisionCall::set_policy));
static_assert(WR_CALL_PEER_PLACED == static_cast<int>(DecisionCall::peer_placed));
static_assert(kDecisionCallCount == WR_CALL_PEER_PLACED + 1);
static_assert(WR_SPLIT_SLOTS >= kSplitCount);

TEST(CTraceNames, AreThoseOfCpp) {
  for (std::uint32_t i = 0; i < kTraceFormatNames.size(); ++i) EXPECT_EQ(wr_trace_format_name(i), kTraceFormatNames[i]);
  const struct {
    std::uint32_t number;
    const char* name;
  } calls[] = {{WR_CALL_SET_POLICY, "set_policy"},
               {WR_CALL_ADD_REPLICA, "add_replica"},
               {WR_CALL_REMOVE_REPLICA, "remove_replica"},
               {WR_CALL_SET_HEALTH, "set_health"},
               {WR_CALL_UPDATE_REPLICA, "update_replica"},
               {WR_CALL_CLEAR_CACHE, "clear_cache"},
               {WR_CALL_SIGNAL, "signal"},
               {WR_CALL_PREFIX_COUNTERS, "prefix_counters"},
               {WR_CALL_BLOCKS_STORED, "blocks_stored"},
               {WR_CALL_BLOCKS_REMOVED, "blocks_removed"},
               {WR_CALL_BLOCKS_ALSO_ON, "blocks_also_on"},
               {WR_CALL_CLEAR_SHARED_STORE, "clear_shared_store"},
               {WR_CALL_ROUTE, "route"},
               {WR_CALL_FIRST_TOKEN, "first_token"},
               {WR_CALL_FINISH, "finish"},
               {WR_CALL_FAIL, "fail"},
               {WR_CALL_ADVANCE, "advance"},
               {WR_CALL_RESTORE_CACHED, "restore_cached"},
               {WR_CALL_DRAIN, "drain"},
               {WR_CALL_TRANSFER_DONE, "transfer_done"},
               {WR_CALL_RESTORE_LEARNED, "restore_learned"},
               {WR_CALL_PEER_LOADS, "peer_loads"},
               {WR_CALL_PEER_PLACED, "peer_placed"}};
  for (const auto& call : calls) {
    EXPECT_STREQ(wr_call_name(call.number), call.name);
    EXPECT_EQ(decision_call_name(static_cast<DecisionCall>(call.number)), call.name);
  }
}

TEST(CTraceDefaults, AreThoseOfCpp) {
  const wr_trace_options c = WR_TRACE_OPTIONS_INIT;
  EXPECT_EQ(c.format, static_cast<std::uint32_t>(TraceOptions{}.format));
  EXPECT_EQ(c.share_system_prompts != 0, TraceOptions{}.share_system_prompts);
  EXPECT_EQ(c.conversation_gap_us, TraceOptions{}.conversation_gap_us);
  EXPECT_EQ(c.block_salt, TraceOptions{}.block_salt);
  EXPECT_EQ(c.max_line_bytes, TraceLimits{}.max_line_bytes);
  EXPECT_EQ(c.max_tokens, TraceLimits{}.max_tokens);
  EXPECT_EQ(c.max_blocks, TraceLimits{}.max_blocks);
  EXPECT_EQ(c.max_chats, TraceLimits{}.max_chats);
  const wr_trace_record record = WR_TRACE_RECORD_INIT;
  EXPECT_EQ(record.block_tokens, TraceRecord{}.block_tokens);
  EXPECT_EQ(record.input_tokens, TraceRecord{}.input_tokens);
  const wr_decision_log_options log = WR_DECISION_LOG_OPTIONS_INIT;
  EXPECT_EQ(log.max_bytes, DecisionLogOptions{}.max_bytes);
  EXPECT_EQ(log.buffer_bytes, DecisionLogOptions{}.buffer_bytes);
  EXPECT_EQ(log.max_record_bytes, DecisionLogOptions{}.max_record_bytes);
  const wr_rates rates = WR_RATES_INIT;
  EXPECT_EQ((Rates{rates.floor_ns, rates.token_ps, rates.pair_ps, rates.context_ps, rates.overhead_ns}), Rates{});
}

}  // namespace
}  // namespace warmroute::trace
