// Journal records as lines of JSON and as FOCUS rows. Money is written as exact decimals.
#include <absl/time/time.h>

#include <cstdlib>

#include "text/json_escape.hpp"
#include "usage/journal_record.hpp"

namespace warmroute {
namespace {

std::string rfc3339(WallNanos time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixNanos(time.value), absl::UTCTimeZone());
}

// `value` x 10^-digits, without trailing zeros.
std::string exact_decimal(std::int64_t value, int digits) {
  const bool negative = value < 0;
  std::string text =
      std::to_string(negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
  if (text.size() <= static_cast<std::size_t>(digits))
    text.insert(0, static_cast<std::size_t>(digits) + 1 - text.size(), '0');
  text.insert(text.size() - static_cast<std::size_t>(digits), 1, '.');
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return negative ? "-" + text : text;
}

std::string_view kind_word(JournalKind kind) {
  switch (kind) {
    case JournalKind::begin: return "begin";
    case JournalKind::end: return "end";
    case JournalKind::incomplete: return "incomplete";
    case JournalKind::withdrawn: return "withdrawn";
  }
  return "unknown";
}

std::string_view usage_source_word(UsageSource source) {
  constexpr std::string_view kWords[] = {"none", "provider", "timings", "estimate"};
  const auto i = static_cast<std::size_t>(source);
  return i < std::size(kWords) ? kWords[i] : std::string_view{"unknown"};
}

std::string_view cost_source_word(CostSource source) {
  constexpr std::string_view kWords[] = {"unknown", "table", "self_hosted", "reported"};
  const auto i = static_cast<std::size_t>(source);
  return i < std::size(kWords) ? kWords[i] : std::string_view{"unknown"};
}

struct JsonMembers {
  std::string& out;
  char before = '{';

  void name(std::string_view n) {
    out += before;
    before = ',';
    text::append_json_string(out, n);
    out += ':';
  }
  void string(std::string_view n, std::string_view value) {
    if (value.empty()) return;
    name(n);
    text::append_json_string(out, value);
  }
  void raw(std::string_view n, std::string_view value) {
    name(n);
    out += value;
  }
};

// Quoted as RFC 4180 says where it must be; a leading '=' and the like is no formula's beginning in a spreadsheet.
void append_csv(std::string& out, std::string_view field) {
  const bool formula = !field.empty() && std::string_view{"=+-@"}.find(field.front()) != std::string_view::npos;
  if (!formula && field.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  if (formula) out += '\'';
  for (const char c : field) out.append(c == '"' ? 2 : 1, c);
  out += '"';
}

bool is_requests(PriceMeter meter) { return meter == PriceMeter::web_search; }

std::string count_text(const UsageCount& count) { return count ? std::to_string(*count) : std::string(); }

}  // namespace

void append_json_line(const JournalRecord& record, std::string& out) {
  const UsageEvent& e = record.event;
  JsonMembers m{out};
  m.string("event_id", record.event_id);
  m.string("source", std::string_view{record.event_id}.substr(0, record.event_id.find('-')));
  m.string("kind", kind_word(record.kind));
  m.string("operation_id", e.operation_id);
  m.raw("attempt", std::to_string(e.attempt));
  m.string("start_time", rfc3339(e.start_time));
  if (record.kind == JournalKind::end) m.string("end_time", rfc3339(e.end_time));
  m.string("key_id", e.key_id);
  m.string("team_id", e.team_id);
  m.string("class_id", e.class_id);
  m.string("replica_id", e.replica_id);
  m.string("gen_ai.provider.name", e.provider);
  m.string("gen_ai.operation.name", e.operation);
  m.string("gen_ai.request.model", e.request_model);
  m.string("gen_ai.response.model", e.response_model);
  m.string("gen_ai.response.id", e.response_id);
  for (const usage::UsageField& field : usage::kUsageFields) {
    if (const UsageCount& count = e.usage.*field.count) m.raw(field.name, std::to_string(*count));
  }
  m.raw("complete", e.complete && record.kind == JournalKind::end ? "true" : "false");
  m.raw("error", e.error ? "true" : "false");
  m.string("usage_source", usage_source_word(e.source));
  m.name("anomalies");
  char before = '[';
  for (std::size_t bit = 0; bit < kUsageAnomalyCount; ++bit) {
    if ((e.anomalies.bits >> bit & 1) == 0) continue;
    out += before;
    before = ',';
    text::append_json_string(out, usage_anomaly_name(bit));
  }
  out += before == '[' ? "[]" : "]";
  if (!e.finish_reason.empty()) {
    m.name("gen_ai.response.finish_reasons");
    out += '[';
    text::append_json_string(out, e.finish_reason);
    out += ']';
  }
  m.string("service_tier", e.service_tier);
  m.raw("cost_picos", e.cost_picos ? std::to_string(*e.cost_picos) : "null");
  m.string("cost_source", cost_source_word(e.cost_source));
  m.string("price_key", e.price_key);
  m.string("price_table_version", e.price_table_version);
  if (e.usage.reported_cost_picos) m.raw("reported_cost_picos", std::to_string(*e.usage.reported_cost_picos));
  out += "}\n";
}

std::string_view focus_header() noexcept {
  return "ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceProviderName,SkuId,SkuMeter,ConsumedQuantity,"
         "ConsumedUnit,PricingQuantity,PricingUnit,ListUnitPrice,ListCost,BillingCurrency,x_EventId,x_OperationId,"
         "x_Attempt,x_KeyId,x_TeamId,x_Model,x_ReplicaId,x_PriceTableVersion,x_Complete,x_InputTokens,"
         "x_CachedInputTokens,x_CacheWriteInputTokens,x_OutputTokens\n";
}

void append_focus_rows(const JournalRecord& record, std::string& out) {
  const UsageEvent& e = record.event;
  const bool ended = record.kind == JournalKind::end;
  const auto row = [&](const CostLine* line) {
    const auto put = [&out](std::string_view field) {
      append_csv(out, field);
      out += ',';
    };
    put(rfc3339(e.start_time));
    put(rfc3339(ended ? e.end_time : e.start_time));
    put("Usage");
    put(e.provider);
    put(e.price_key);
    const std::string quantity = line == nullptr ? std::string() : std::to_string(line->quantity);
    const std::string_view unit = line == nullptr ? "" : is_requests(line->meter) ? "requests" : "tokens";
    put(line == nullptr ? std::string_view{} : price_meter_name(line->meter));
    for (int i = 0; i < 2; ++i) {
      put(quantity);
      put(unit);
    }
    put(line == nullptr ? std::string() : exact_decimal(line->rate_femtos, 15));
    // A cost without a bill (the provider's own word) stands in the row without meter.
    const bool whole = line == nullptr && e.bill.empty() && e.cost_picos;
    put(line != nullptr ? exact_decimal(line->cost_picos, 12) : whole ? exact_decimal(*e.cost_picos, 12) : "");
    put("USD");
    put(record.event_id);
    put(e.operation_id);
    put(std::to_string(e.attempt));
    put(e.key_id);
    put(e.team_id);
    put(e.response_model.empty() ? e.request_model : e.response_model);
    put(e.replica_id);
    put(e.price_table_version);
    put(e.complete && ended ? "true" : "false");
    // Tokens beside a bill would be counted once for each of its rows.
    put(line == nullptr ? count_text(e.usage.input_tokens) : "");
    put(line == nullptr ? count_text(e.usage.cached_input_tokens) : "");
    put(line == nullptr ? count_text(e.usage.cache_write_input_tokens) : "");
    append_csv(out, line == nullptr ? count_text(e.usage.output_tokens) : "");
    out += '\n';
  };
  for (const CostLine& line : e.bill) row(&line);
  if (e.bill.empty()) row(nullptr);
}

}  // namespace warmroute
