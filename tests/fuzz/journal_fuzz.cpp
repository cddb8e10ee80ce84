// Whatever the bytes, a journal's record is refused or read, and what was read is written as a record that reads the same.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "usage/journal_record.hpp"

namespace {

using namespace warmroute;

void check(bool good) {
  if (!good) std::abort();
}

bool same(const UsageEvent& a, const UsageEvent& b) {
  return a.operation_id == b.operation_id && a.attempt == b.attempt && a.start_time == b.start_time &&
         a.end_time == b.end_time && a.price_table_version == b.price_table_version && a.usage == b.usage &&
         a.cost_picos == b.cost_picos && a.anomalies == b.anomalies && a.bill.size() == b.bill.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  usage::SegmentHead head;
  static_cast<void>(usage::read_segment_header(bytes, head));
  check(usage::whole_payload(bytes).size() <= size);
  JournalRecord record;
  std::array<CostLine, kPriceMeterCount> bill{};
  if (!usage::read_payload(bytes, record, bill)) return 0;
  std::string again;
  if (!usage::append_record(again, record.kind, record.number, record.event)) return 0;
  const std::string_view payload = usage::whole_payload(again);
  check(!payload.empty());
  JournalRecord second;
  std::array<CostLine, kPriceMeterCount> second_bill{};
  check(usage::read_payload(payload, second, second_bill));
  check(second.kind == record.kind && second.number == record.number && same(second.event, record.event));
  return 0;
}
