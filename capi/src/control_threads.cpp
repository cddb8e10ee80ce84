// A file that is watched, a journal that is handed over: each on a thread of its own.
#include <memory>
#include <optional>
#include <string>

#include "control.hpp"
#include "usage.hpp"
#include "warmroute/control/sink.hpp"
#include "warmroute/control/source.hpp"
#include "worker.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_file_source {
  wr_file_bytes_fn on_bytes = nullptr;
  wr_file_same_fn on_same = nullptr;
  void* user = nullptr;
  wr_usage_clock_fn clock = nullptr;
  void* clock_user = nullptr;
  wr_log_fn log = nullptr;
  void* log_user = nullptr;
  wr_applier* applier = nullptr;
  std::optional<FileSourceThread> source;  // last: its thread uses the others
};

struct wr_usage_batch {
  std::span<const JournalRecord> records;
  // The record that was read last, as C sees it.
  wr_usage_event event = WR_USAGE_EVENT_INIT;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  wr_cost cost = WR_COST_INIT;
};

struct wr_handover final : private UsageSink {
  wr_deliver_fn deliver_fn = nullptr;
  void* user = nullptr;
  wr_log_fn log = nullptr;
  void* log_user = nullptr;
  std::optional<JsonLinesSink> file;
  std::optional<HandoverThread> handover;  // last: its thread uses the others

  UsageSink& sink() noexcept { return *this; }

 private:
  Status deliver(std::span<const JournalRecord> records) override {
    if (file) return file->deliver(records);
    wr_usage_batch batch{records};
    return said_by([&](wr_error* err) { return deliver_fn(user, &batch, err); });
  }
};

namespace {

const wr_file_source_options kFileSourceDefaults = WR_FILE_SOURCE_OPTIONS_INIT;
const wr_handover_options kHandoverDefaults = WR_HANDOVER_OPTIONS_INIT;
constexpr std::string_view kNoFileSource = "source is NULL";
constexpr std::string_view kNoHandover = "handover is NULL";

// Of a handle with `log` and `log_user`.
template <class Handle>
LogSink log_through(Handle& handle) noexcept {
  if (handle.log == nullptr) return {};
  return {&handle, [](void* self, LogLevel level, std::string_view message) {
            const auto& h = *static_cast<const Handle*>(self);
            h.log(h.log_user, static_cast<std::uint32_t>(level), str(message));
          }};
}

FileSourceOptions file_source_options_of(const wr_file_source_options& o, wr_file_source& handle) {
  FileSourceOptions out;
  out.path = view(o.path);
  out.interval = Nanos{o.interval_ns};
  out.retry_to = Nanos{o.retry_to_ns};
  out.max_bytes = o.max_bytes;
  out.user = &handle;
  out.log = log_through(handle);
  if (handle.clock != nullptr) {
    out.clock_user = &handle;
    out.clock = [](void* self) {
      const auto& h = *static_cast<const wr_file_source*>(self);
      std::int64_t steady_ns = 0;
      std::int64_t wall_ns = 0;
      h.clock(h.clock_user, &steady_ns, &wall_ns);
      return UsageTime{Nanos{steady_ns}, WallNanos{wall_ns}};
    };
  }
  if (handle.applier != nullptr) {
    out.user = &applier_of(*handle.applier);
    out.on_bytes = &SnapshotApplier::on_bytes;
    out.on_same = &SnapshotApplier::on_same;
    return out;
  }
  out.on_bytes = [](void* self, std::string_view bytes, UsageTime now) {
    const auto& h = *static_cast<const wr_file_source*>(self);
    return said_by(
        [&](wr_error* err) { return h.on_bytes(h.user, str(bytes), now.steady.value, now.wall.value, err); });
  };
  if (handle.on_same != nullptr) {
    out.on_same = [](void* self, UsageTime now) {
      const auto& h = *static_cast<const wr_file_source*>(self);
      h.on_same(h.user, now.steady.value, now.wall.value);
    };
  }
  return out;
}

wr_status record_of(const wr_usage_batch* batch, std::size_t index, const JournalRecord*& out, wr_error* err) noexcept {
  if (batch == nullptr) return null_argument(err, "batch is NULL");
  if (index >= batch->records.size()) return fail(err, Code::out_of_range, "the batch has fewer records");
  out = &batch->records[index];
  return WR_STATUS_OK;
}

template <class Append>
wr_status give_of_batch(const wr_usage_batch* batch, std::size_t index, char* buf, std::size_t cap, std::size_t* needed,
                        wr_error* err, Append&& append) noexcept {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  const JournalRecord* record = nullptr;
  if (const wr_status bad = record_of(batch, index, record, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    std::string text;
    append(*record, text);
    return give(text, 1, buf, cap, needed, err);
  });
}

}  // namespace

extern "C" {

wr_status wr_file_source_new(wr_applier* applier, const wr_file_source_options* options, wr_file_source** out,
                             wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  const Input<wr_file_source_options> in(options, kFileSourceDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->path)) return null_argument(err, "path has a size and no data");
  if ((applier != nullptr) == (in->on_bytes != nullptr) || (applier != nullptr && in->on_same != nullptr)) {
    return fail(err, Code::invalid_argument, "either an applier is filled, or on_bytes is called");
  }
  return guard(err, [&] {
    auto handle = std::make_unique<wr_file_source>();
    handle->on_bytes = in->on_bytes;
    handle->on_same = in->on_same;
    handle->user = in->user;
    handle->clock = in->clock;
    handle->clock_user = in->clock_user;
    handle->log = in->log;
    handle->log_user = in->log_user;
    handle->applier = applier;
    auto started = FileSourceThread::start(file_source_options_of(*in, *handle));
    if (!started) return fail(err, started.error());
    handle->source.emplace(std::move(*started));
    *out = handle.release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_file_source_free(wr_file_source* source) { delete source; }

wr_status wr_file_source_look_now(wr_file_source* source, wr_error* err) {
  if (source == nullptr) return null_argument(err, kNoFileSource);
  return guard(err, [&] {
    source->source->look_now();
    return WR_STATUS_OK;
  });
}

wr_status wr_file_source_read_status(const wr_file_source* source, wr_file_source_status* out, wr_error* err) {
  if (source == nullptr) return null_argument(err, kNoFileSource);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const FileSourceStatus s = source->source->status();
    wr_file_source_status told = WR_FILE_SOURCE_STATUS_INIT;
    told.missing = s.missing ? 1 : 0;
    told.good = s.good ? 1 : 0;
    told.looks = s.looks;
    told.reads = s.reads;
    told.accepted = s.accepted;
    told.refused = s.refused;
    copy_cut(s.last_error, told.last_error);
    write(out, told);
    return WR_STATUS_OK;
  });
}

size_t wr_usage_batch_count(const wr_usage_batch* batch) { return batch == nullptr ? 0 : batch->records.size(); }

wr_status wr_usage_batch_read(wr_usage_batch* batch, size_t index, wr_journal_record* out, wr_error* err) {
  if (!writable(out)) return null_argument(err, kBadOutput);
  const JournalRecord* record = nullptr;
  if (const wr_status bad = record_of(batch, index, record, err); bad != WR_STATUS_OK) return bad;
  fill_event(record->event, batch->event, batch->report, batch->cost);
  write(out,
        wr_journal_record{
            0, static_cast<std::uint32_t>(record->kind), record->number, str(record->event_id), &batch->event, {}});
  return WR_STATUS_OK;
}

wr_status wr_usage_batch_json_line(const wr_usage_batch* batch, size_t index, char* buf, size_t cap, size_t* needed,
                                   wr_error* err) {
  return give_of_batch(batch, index, buf, cap, needed, err,
                       [](const JournalRecord& record, std::string& text) { append_json_line(record, text); });
}

wr_status wr_usage_batch_focus_rows(const wr_usage_batch* batch, size_t index, char* buf, size_t cap, size_t* needed,
                                    wr_error* err) {
  return give_of_batch(batch, index, buf, cap, needed, err,
                       [](const JournalRecord& record, std::string& text) { append_focus_rows(record, text); });
}

wr_status wr_handover_new(wr_journal* journal, const wr_handover_options* options, wr_handover** out, wr_error* err) {
  if (journal == nullptr || out == nullptr) return null_argument(err, "journal or out is NULL");
  const Input<wr_handover_options> in(options, kHandoverDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->json_lines)) return null_argument(err, "json_lines has a size and no data");
  if ((in->json_lines.size != 0) == (in->deliver != nullptr)) {
    return fail(err, Code::invalid_argument, "either json_lines is written, or deliver is called");
  }
  return guard(err, [&] {
    auto handle = std::make_unique<wr_handover>();
    handle->deliver_fn = in->deliver;
    handle->user = in->user;
    handle->log = in->log;
    handle->log_user = in->log_user;
    if (in->json_lines.size != 0) handle->file.emplace(std::string(view(in->json_lines)));
    HandoverOptions chosen{in->batch, Nanos{in->interval_ns}, Nanos{in->backoff_from_ns}, Nanos{in->backoff_to_ns}, {}};
    chosen.log = log_through(*handle);
    auto started = HandoverThread::start(journal->journal, journal->directory, handle->sink(), chosen);
    if (!started) return fail(err, started.error());
    handle->handover.emplace(std::move(*started));
    *out = handle.release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_handover_free(wr_handover* handover) { delete handover; }

wr_status wr_handover_drain(wr_handover* handover, int64_t timeout_ns, uint32_t* drained, wr_error* err) {
  if (handover == nullptr) return null_argument(err, kNoHandover);
  return guard(err, [&] {
    const bool all = handover->handover->drain(Nanos{timeout_ns});
    if (drained != nullptr) *drained = all ? 1 : 0;
    return WR_STATUS_OK;
  });
}

wr_status wr_handover_read_status(const wr_handover* handover, wr_handover_status* out, wr_error* err) {
  if (handover == nullptr) return null_argument(err, kNoHandover);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const HandoverStatus s = handover->handover->status();
    wr_handover_status told = WR_HANDOVER_STATUS_INIT;
    told.drained = s.drained ? 1 : 0;
    told.delivered = s.delivered;
    told.batches = s.batches;
    told.failures = s.failures;
    told.failures_in_row = s.failures_in_row;
    told.acknowledged = {s.acknowledged.segment, s.acknowledged.offset};
    copy_cut(s.last_error, told.last_error);
    write(out, told);
    return WR_STATUS_OK;
  });
}

wr_status wr_handover_prometheus(const wr_handover* handover, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (handover == nullptr || needed == nullptr) return null_argument(err, "handover or needed is NULL");
  return guard(err, [&] {
    std::string page;
    append_prometheus(handover->handover->status(), page);
    return give(page, 1, buf, cap, needed, err);
  });
}

}  // extern "C"
