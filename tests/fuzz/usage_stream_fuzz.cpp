// The way out of a stream: the same whole and in pieces, never longer, equal unless the usage chunk was taken out. And the
// same bytes as a request: what is made of it still walks to its end, and then asks.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "warmroute/usage/request_side.hpp"

namespace {

void check(bool good) {
  if (!good) std::abort();
}

std::string filtered(std::string_view stream, std::size_t step, bool& removed) {
  warmroute::UsageChunkFilter filter;
  std::string out;
  for (std::size_t at = 0; at < stream.size(); at += step) filter.feed(stream.substr(at, step), out);
  filter.finish(out);
  removed = filter.removed();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  bool whole_removed = false;
  bool removed = false;
  const std::string whole = filtered(text, text.size() + 1, whole_removed);
  const std::string pieces = filtered(text, 1 + data[0] % 5, removed);
  check(whole == pieces && whole_removed == removed);
  check(removed ? whole.size() < text.size() : whole == text);
  const auto ask = warmroute::ask_for_usage(text);
  if (!ask) {
    check(!ask.error().message.empty());
    return 0;
  }
  check(ask->splice.empty() || (ask->stream && !ask->asked));
  if (!ask->stream) return 0;
  const auto again = warmroute::ask_for_usage(warmroute::spliced(text, ask->splice));
  check(again.ok() && again->stream && again->asked && again->splice.empty());
  return 0;
}
