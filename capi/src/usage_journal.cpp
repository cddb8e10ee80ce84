// The record that survives a crash.
#include <memory>
#include <string>

#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_journal_options kJournalDefaults = WR_JOURNAL_OPTIONS_INIT;
constexpr std::string_view kNoJournal = "journal is NULL";
constexpr std::string_view kNoReader = "reader is NULL";

wr_status read_journal_options(const wr_journal_options* given, JournalOptions& out, wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_journal_options> in(given, kJournalDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->sync > WR_JOURNAL_SYNC_EACH || in->on_full > WR_JOURNAL_SERVE_UNBILLED) {
    return fail(err, Code::out_of_range, "sync or on_full is not one of WR_JOURNAL_...");
  }
  out.sync = static_cast<JournalSync>(in->sync);
  out.on_full = static_cast<JournalFull>(in->on_full);
  out.sync_bytes = in->sync_bytes;
  out.segment_bytes = in->segment_bytes;
  out.max_bytes = in->max_bytes;
  out.max_held_ends = in->max_held_ends;
  return WR_STATUS_OK;
}

JournalCursor cursor_in(wr_journal_cursor c) noexcept { return {c.segment, c.offset}; }
wr_journal_cursor cursor_out(JournalCursor c) noexcept { return {c.segment, c.offset}; }

// A text of the reader's last record.
template <class Append>
wr_status give_record(const wr_journal_reader* reader, char* buf, std::size_t cap, std::size_t* needed, wr_error* err,
                      Append&& append) noexcept {
  if (reader == nullptr || needed == nullptr) return null_argument(err, "reader or needed is NULL");
  if (!reader->read) return fail(err, Code::not_found, "no record was read yet");
  return guard(err, [&] {
    std::string text;
    append(reader->record, text);
    return give(text, 1, buf, cap, needed, err);
  });
}

}  // namespace

extern "C" {

wr_status wr_journal_open(wr_str directory, const wr_journal_options* options, wr_journal** out, wr_error* err) {
  if (out == nullptr || !readable(directory)) return null_argument(err, "out is NULL, or directory has no data");
  JournalOptions chosen;
  if (const wr_status bad = read_journal_options(options, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    auto journal = Journal::open(std::string(view(directory)), chosen);
    if (!journal) return fail(err, journal.error());
    *out = std::make_unique<wr_journal>(wr_journal{std::move(*journal), std::string(view(directory))}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_journal_free(wr_journal* journal) { delete journal; }

wr_status wr_journal_begin(wr_journal* journal, const wr_usage_event* estimate, uint64_t* number, wr_error* err) {
  if (journal == nullptr || number == nullptr) return null_argument(err, "journal or number is NULL");
  EventInput in;
  if (const wr_status bad = in.read(estimate, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    const auto given = journal->journal.begin(in.event);
    if (!given) return fail(err, given.error());
    *number = *given;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_journal_end(wr_journal* journal, uint64_t number, const wr_usage_event* event, wr_error* err) {
  if (journal == nullptr) return null_argument(err, kNoJournal);
  EventInput in;
  if (const wr_status bad = in.read(event, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] { return done(journal->journal.end(number, in.event), err); });
}

wr_status wr_journal_withdraw(wr_journal* journal, uint64_t number, wr_error* err) {
  if (journal == nullptr) return null_argument(err, kNoJournal);
  return guard(err, [&] { return done(journal->journal.withdraw(number), err); });
}

wr_status wr_journal_sync(wr_journal* journal, wr_error* err) {
  if (journal == nullptr) return null_argument(err, kNoJournal);
  return guard(err, [&] { return done(journal->journal.sync(), err); });
}

wr_status wr_journal_acknowledge(wr_journal* journal, wr_journal_cursor cursor, wr_error* err) {
  if (journal == nullptr) return null_argument(err, kNoJournal);
  return guard(err, [&] { return done(journal->journal.acknowledge(cursor_in(cursor)), err); });
}

wr_status wr_journal_acknowledged(const wr_journal* journal, wr_journal_cursor* out, wr_error* err) {
  if (journal == nullptr || out == nullptr) return null_argument(err, "journal or out is NULL");
  return guard(err, [&] {
    *out = cursor_out(journal->journal.acknowledged());
    return WR_STATUS_OK;
  });
}

wr_status wr_journal_read_statistics(const wr_journal* journal, wr_journal_statistics* out, wr_error* err) {
  if (journal == nullptr) return null_argument(err, kNoJournal);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const JournalStatistics s = journal->journal.statistics();
    write(out, wr_journal_statistics{0,
                                     s.full ? 1u : 0u,
                                     s.begins,
                                     s.ends,
                                     s.recovered,
                                     s.torn_bytes,
                                     s.damaged,
                                     s.unbilled,
                                     s.lost_ends,
                                     s.held_ends,
                                     s.open,
                                     s.bytes,
                                     s.syncs,
                                     {}});
    return WR_STATUS_OK;
  });
}

wr_status wr_journal_reader_open(wr_str directory, wr_journal_cursor from, wr_journal_reader** out, wr_error* err) {
  if (out == nullptr || !readable(directory)) return null_argument(err, "out is NULL, or directory has no data");
  return guard(err, [&] {
    auto reader = JournalReader::open(std::string(view(directory)), cursor_in(from));
    if (!reader) return fail(err, reader.error());
    *out = std::make_unique<wr_journal_reader>(wr_journal_reader{std::move(*reader), false, {}}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_journal_reader_free(wr_journal_reader* reader) { delete reader; }

wr_status wr_journal_reader_next(wr_journal_reader* reader, uint32_t begins, wr_journal_record* out, uint32_t* found,
                                 wr_error* err) {
  if (reader == nullptr || found == nullptr) return null_argument(err, "reader or found is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    reader->read = false;
    const auto more = reader->reader.next(reader->record, begins != 0);
    if (!more) return fail(err, more.error());
    *found = *more ? 1 : 0;
    if (!*more) return static_cast<wr_status>(WR_STATUS_OK);
    reader->read = true;
    fill_event(reader->record.event, reader->event, reader->report, reader->cost);
    const JournalRecord& r = reader->record;
    write(out, wr_journal_record{0, static_cast<std::uint32_t>(r.kind), r.number, str(r.event_id), &reader->event, {}});
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_journal_reader_cursor(const wr_journal_reader* reader, wr_journal_cursor* out, wr_error* err) {
  if (reader == nullptr || out == nullptr) return null_argument(err, kNoReader);
  *out = cursor_out(reader->reader.cursor());
  return WR_STATUS_OK;
}

wr_status wr_journal_reader_json_line(const wr_journal_reader* reader, char* buf, size_t cap, size_t* needed,
                                      wr_error* err) {
  return give_record(reader, buf, cap, needed, err,
                     [](const JournalRecord& record, std::string& text) { append_json_line(record, text); });
}

wr_status wr_journal_reader_focus_rows(const wr_journal_reader* reader, char* buf, size_t cap, size_t* needed,
                                       wr_error* err) {
  return give_record(reader, buf, cap, needed, err,
                     [](const JournalRecord& record, std::string& text) { append_focus_rows(record, text); });
}

const char* wr_focus_header(void) { return focus_header().data(); }

}  // extern "C"
