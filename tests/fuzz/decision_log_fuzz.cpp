// Any bytes as a log of decisions (first byte 0), or as one record's content behind its check: no crash, and a record that is taken is written
// and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "trace/decision_log/codec.hpp"

namespace {

using namespace warmroute;
using namespace warmroute::trace;

void check(bool good) {
  if (!good) std::abort();
}

void read_log(std::string_view bytes) {
  DecisionLogLimits limits;
  limits.max_record_bytes = 2'000;
  auto log = DecisionLogReader::from_bytes(bytes, limits);
  if (!log) return;
  DecisionRecord record;
  std::uint64_t number = 0;
  while (true) {
    const auto more = log->next(record);
    if (!more || !*more) break;
    check(record.number == number++);
  }
  check(log->torn_bytes() <= bytes.size());
}

void read_record(std::string_view content) {
  DecisionRecord record;
  if (!read_content(content, Nanos{5}, record)) return;
  std::string again;
  append_content(record, Nanos{5}, again);
  std::string framed;
  append_framed(again, 7, 3, framed);
  const FrameView frame = read_frame(framed, 7, 3);
  check(frame.state == Frame::whole && frame.content == again && frame.bytes == framed.size());
  check(read_frame(std::string_view(framed).substr(0, framed.size() - 1), 7, 3).state == Frame::cut);
  DecisionRecord second;
  check(read_content(again, Nanos{5}, second).ok());
  std::string line, second_line;
  append_json_line(record, line, true);
  append_json_line(second, second_line, true);
  check(line == second_line && same_decision(record.decision, second.decision));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest{reinterpret_cast<const char*>(data) + 1, size - 1};
  data[0] == 0 ? read_log(rest) : read_record(rest);
  return 0;
}
