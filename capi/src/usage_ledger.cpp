// Who used how much.
#include <memory>
#include <vector>

#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_ledger {
  Ledger ledger;
};

struct wr_ledger_rows {
  std::vector<LedgerRow> rows;
};

namespace {

const wr_ledger_options kLedgerDefaults = WR_LEDGER_OPTIONS_INIT;
constexpr std::string_view kNoLedger = "ledger is NULL";
constexpr std::string_view kNotBy = "by has bits that are not WR_LEDGER_BY_...";

wr_ledger_row ledger_row(const LedgerRow& r) noexcept {
  const LedgerSums& s = r.sums;
  wr_ledger_row out = WR_LEDGER_ROW_INIT;
  out.key_id = str(r.key_id);
  out.team_id = str(r.team_id);
  out.model = str(r.model);
  out.replica_id = str(r.replica_id);
  out.class_id = str(r.class_id);
  out.window_start_wall_ns = r.window_start.value;
  out.attempts = s.attempts;
  out.incomplete = s.incomplete;
  out.errors = s.errors;
  out.unknown_usage = s.unknown_usage;
  out.unknown_cost = s.unknown_cost;
  out.input_tokens = s.input_tokens;
  out.cached_input_tokens = s.cached_input_tokens;
  out.cache_write_input_tokens = s.cache_write_input_tokens;
  out.output_tokens = s.output_tokens;
  out.reasoning_output_tokens = s.reasoning_output_tokens;
  out.cache_reported_input_tokens = s.cache_reported_input_tokens;
  out.cost_usd = s.cost.usd;
  out.cost_picos = s.cost.picos;
  out.saved_usd = s.saved_by_cache.usd;
  out.saved_picos = s.saved_by_cache.picos;
  return out;
}

wr_status read_ledger_options(const wr_ledger_options* given, LedgerOptions& out, wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_ledger_options> in(given, kLedgerDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->by > WR_LEDGER_BY_ALL) return fail(err, Code::out_of_range, kNotBy);
  if (in->window_ns <= 0) return fail(err, Code::out_of_range, "window_ns is not above 0");
  if (in->reprice != 0 && in->prices == nullptr) return fail(err, Code::invalid_argument, "reprice needs prices");
  out.by = static_cast<LedgerBy>(in->by);
  out.window = Nanos{in->window_ns};
  out.max_rows = in->max_rows;
  if (in->prices != nullptr) out.prices = in->prices->table.get();
  out.reprice = in->reprice != 0;
  return WR_STATUS_OK;
}

}  // namespace

extern "C" {

wr_status wr_ledger_new(const wr_ledger_options* options, wr_ledger** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  LedgerOptions chosen;
  if (const wr_status bad = read_ledger_options(options, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    *out = std::make_unique<wr_ledger>(wr_ledger{Ledger(chosen)}).release();
    return WR_STATUS_OK;
  });
}

void wr_ledger_free(wr_ledger* ledger) { delete ledger; }

wr_status wr_ledger_add(wr_ledger* ledger, const wr_usage_event* event, uint32_t incomplete, wr_error* err) {
  if (ledger == nullptr) return null_argument(err, kNoLedger);
  EventInput in;
  if (const wr_status bad = in.read(event, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    ledger->ledger.add(in.event, incomplete != 0);
    return WR_STATUS_OK;
  });
}

wr_status wr_ledger_read(wr_ledger* ledger, wr_journal_reader* reader, uint64_t* events, wr_error* err) {
  if (ledger == nullptr || reader == nullptr) return null_argument(err, "ledger or reader is NULL");
  return guard(err, [&] {
    reader->read = false;
    const auto count = ledger->ledger.read(reader->reader);
    if (!count) return fail(err, count.error());
    if (events != nullptr) *events = *count;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_ledger_snapshot(const wr_ledger* ledger, uint32_t by, wr_ledger_rows** out, wr_error* err) {
  if (ledger == nullptr || out == nullptr) return null_argument(err, "ledger or out is NULL");
  if (by > WR_LEDGER_BY_ALL) return fail(err, Code::out_of_range, kNotBy);
  return guard(err, [&] {
    *out =
        std::make_unique<wr_ledger_rows>(wr_ledger_rows{ledger->ledger.snapshot(static_cast<LedgerBy>(by))}).release();
    return WR_STATUS_OK;
  });
}

void wr_ledger_rows_free(wr_ledger_rows* rows) { delete rows; }
size_t wr_ledger_rows_count(const wr_ledger_rows* rows) { return rows == nullptr ? 0 : rows->rows.size(); }

wr_status wr_ledger_rows_read(const wr_ledger_rows* rows, size_t row, wr_ledger_row* out, wr_error* err) {
  if (rows == nullptr) return null_argument(err, "rows is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (row >= rows->rows.size()) return fail(err, Code::out_of_range, "there are fewer rows");
  write(out, ledger_row(rows->rows[row]));
  return WR_STATUS_OK;
}

wr_status wr_ledger_total(const wr_ledger* ledger, wr_ledger_row* out, wr_error* err) {
  if (ledger == nullptr) return null_argument(err, kNoLedger);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    LedgerRow all;
    all.sums = ledger->ledger.total();
    wr_ledger_row told = ledger_row(all);
    told.key_id = told.team_id = told.model = told.replica_id = told.class_id = WR_STR_INIT;  // `all` goes
    write(out, told);
    return WR_STATUS_OK;
  });
}

wr_status wr_ledger_forget_before(wr_ledger* ledger, int64_t wall_ns, size_t* rows, wr_error* err) {
  if (ledger == nullptr) return null_argument(err, kNoLedger);
  return guard(err, [&] {
    const std::size_t dropped = ledger->ledger.forget_before(WallNanos{wall_ns});
    if (rows != nullptr) *rows = dropped;
    return WR_STATUS_OK;
  });
}

size_t wr_ledger_size(const wr_ledger* ledger) { return ledger == nullptr ? 0 : ledger->ledger.rows(); }
uint64_t wr_ledger_overflowed(const wr_ledger* ledger) { return ledger == nullptr ? 0 : ledger->ledger.overflowed(); }

}  // extern "C"
