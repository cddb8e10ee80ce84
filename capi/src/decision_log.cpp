// Routers that record, and the log that they write: read, and played again.
#include "warmroute/trace/decision_log.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "decision.hpp"
#include "router.hpp"
#include "warmroute/trace/decision_recorder.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_decision_log {
  trace::DecisionLogReader reader;
  bool read = false;  // whether `record` is one
  trace::DecisionRecord record;
  wr_decision decision = WR_DECISION_INIT;  // of it, as C sees it
};

namespace {

const wr_decision_log_options kDecisionLogDefaults = WR_DECISION_LOG_OPTIONS_INIT;
const wr_replay_options kReplayDefaults = WR_REPLAY_OPTIONS_INIT;
constexpr std::string_view kNotRecording = "that router does not record: wr_router_new_recording makes one that does";

wr_status read_log_options(const wr_decision_log_options* given, trace::DecisionLogOptions& out,
                           wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_decision_log_options> in(given, kDecisionLogDefaults);
  if (!in) return in.refuse(err, "log is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->key != nullptr) {
    static_assert(sizeof(trace::DecisionLogKey) == WR_DECISION_LOG_KEY_BYTES);
    std::copy_n(in->key, WR_DECISION_LOG_KEY_BYTES, out.key.emplace().begin());
  }
  out.max_bytes = in->max_bytes;
  out.buffer_bytes = in->buffer_bytes;
  out.max_record_bytes = in->max_record_bytes;
  return WR_STATUS_OK;
}

void fill_replay(const trace::DecisionReplay& r, wr_replay& out) noexcept {
  out.records = r.records;
  out.decisions = r.decisions;
  out.differing = r.differing;
  out.other_choices = r.other_choices;
  out.other_results = r.other_results;
  out.torn_bytes = r.torn_bytes;
  if (r.first_difference) {
    out.first_difference = r.first_difference->record;
    out.first_call = static_cast<std::uint32_t>(r.first_difference->call);
  }
  if (const auto& choice = r.first_other_choice) {
    out.first_other_choice = choice->record;
    out.other_choice_ns = choice->now.value;
    out.recorded_verdict = static_cast<std::uint32_t>(choice->recorded.verdict);
    out.replayed_verdict = static_cast<std::uint32_t>(choice->replayed.verdict);
    out.recorded_replica = id_of(choice->recorded.replica);
    out.replayed_replica = id_of(choice->replayed.replica);
  }
}

wr_decision_record decision_record_out(wr_decision_log& log) noexcept {
  const trace::DecisionRecord& r = log.record;
  wr_decision_record out = WR_DECISION_RECORD_INIT;
  out.call = static_cast<std::uint32_t>(r.call);
  out.number = r.number;
  out.now_ns = r.now.value;
  out.replica = id_of(r.replica);
  out.ticket = static_cast<std::uint64_t>(r.ticket);
  out.status = static_cast<wr_status>(r.code);
  out.done = r.done ? 1 : 0;
  out.blocks = r.blocks.empty() ? nullptr : reinterpret_cast<const std::uint64_t*>(r.blocks.data());
  out.block_count = r.blocks.size();
  if (r.call == trace::DecisionCall::route) {
    fill(log.decision, r.decision);
    out.decision = &log.decision;
  }
  return out;
}

}  // namespace

extern "C" {

wr_status wr_router_new_recording(const wr_router_options* options, wr_str path, const wr_decision_log_options* log,
                                  wr_router** out, wr_error* err) {
  if (out == nullptr || !readable(path)) return null_argument(err, "out is NULL, or path has no data");
  RouterMaking making;
  if (const wr_status bad = read_router_options(options, making, err); bad != WR_STATUS_OK) return bad;
  trace::DecisionLogOptions chosen;
  if (const wr_status bad = read_log_options(log, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    auto router =
        std::make_unique<wr_router>(making.options, making.log, making.log_user, std::string(view(path)), chosen);
    if (!router->recorder->ok()) return fail(err, router->recorder->error());
    *out = router.release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_recording(const wr_router* router, wr_recording* out, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (!router->recorder) return fail(err, Code::unsupported, kNotRecording);
  return guard(err, [&] {
    const trace::DecisionLogStatistics s = (*router->recorder)->log_statistics();
    wr_recording told = WR_RECORDING_INIT;
    told.ended = s.ended ? 1 : 0;
    told.records = s.records;
    told.bytes = s.bytes;
    told.unrecorded = s.unrecorded;
    std::memcpy(told.reason, s.reason.data(), std::min(s.reason.size(), sizeof told.reason - 1));
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_flush_recording(wr_router* router, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!router->recorder) return fail(err, Code::unsupported, kNotRecording);
  return guard(err, [&] { return done((*router->recorder)->flush(), err); });
}

const char* wr_call_name(uint32_t call) {
  return call >= 1 && call < trace::kDecisionCallCount
             ? decision_call_name(static_cast<trace::DecisionCall>(call)).data()
             : "unknown";
}

wr_status wr_decision_log_open(wr_str path, wr_decision_log** out, wr_error* err) {
  if (out == nullptr || !readable(path)) return null_argument(err, "out is NULL, or path has no data");
  return guard(err, [&] {
    auto reader = trace::DecisionLogReader::open(std::string(view(path)));
    if (!reader) return fail(err, reader.error());
    *out = std::make_unique<wr_decision_log>(wr_decision_log{std::move(*reader), false, {}}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_decision_log_free(wr_decision_log* log) { delete log; }

wr_status wr_decision_log_next(wr_decision_log* log, wr_decision_record* out, uint32_t* found, wr_error* err) {
  if (log == nullptr || found == nullptr) return null_argument(err, "log or found is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    log->read = false;
    const auto more = log->reader.next(log->record);
    if (!more) return fail(err, more.error());
    *found = *more ? 1 : 0;
    log->read = *more;
    if (*more) write(out, decision_record_out(*log));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_decision_log_json(const wr_decision_log* log, uint32_t blocks, char* buf, size_t cap, size_t* needed,
                               wr_error* err) {
  if (log == nullptr || needed == nullptr) return null_argument(err, "log or needed is NULL");
  if (!log->read) return fail(err, Code::not_found, "no record was read yet");
  return guard(err, [&] {
    std::string text;
    append_json_line(log->record, text, blocks != 0);
    return give(text, 1, buf, cap, needed, err);
  });
}

uint64_t wr_decision_log_torn_bytes(const wr_decision_log* log) {
  return log == nullptr ? 0 : log->reader.torn_bytes();
}

wr_status wr_decision_log_replay(wr_str path, const wr_replay_options* options, wr_replay* out, wr_error* err) {
  if (!readable(path)) return null_argument(err, "path has a size and no data");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const Input<wr_replay_options> in(options != nullptr ? options : &kReplayDefaults, kReplayDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->change)) return null_argument(err, "change has a size and no data");
  return guard(err, [&] {
    auto log = trace::DecisionLogReader::open(std::string(view(path)));
    if (!log) return fail(err, log.error());
    trace::DecisionReplayOptions chosen;
    chosen.change = view(in->change);
    chosen.max_records = in->max_records;
    const auto replay = trace::replay_decisions(*log, chosen);
    if (!replay) return fail(err, replay.error());
    wr_replay told = WR_REPLAY_INIT;
    fill_replay(*replay, told);
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
