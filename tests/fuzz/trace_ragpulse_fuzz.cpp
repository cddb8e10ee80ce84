#include "trace_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return warmroute::fuzz::read_all(data, size, warmroute::trace::TraceFormat::ragpulse);
}
