// Any bytes as an HTTP answer to the poller of metrics: bounded, read alike however they are split, and a fault is told in words.
// The same bytes as a URL: refused, or taken apart into parts that are there.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "poll/http_answer.hpp"
#include "poll/url.hpp"

namespace {

using warmroute::poll::HttpAnswer;
constexpr std::size_t kMaxBody = 1'000;

void require(bool holds) {
  if (!holds) std::abort();
}

HttpAnswer::State read(HttpAnswer& answer, std::string_view bytes, std::size_t piece) {
  answer.begin();
  auto state = HttpAnswer::State::more;
  while (!bytes.empty() && state == HttpAnswer::State::more) {
    state = answer.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    require(answer.body().size() <= kMaxBody);
  }
  return state == HttpAnswer::State::more ? answer.end() : state;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  static HttpAnswer reused(kMaxBody);
  HttpAnswer fresh(kMaxBody);
  const auto whole = read(reused, bytes, size);
  const auto split = read(fresh, bytes, 1 + data[0] % 16U);
  require(whole != HttpAnswer::State::more && whole == split);
  require((whole == HttpAnswer::State::failed) == !reused.fault().empty());
  // Whether the connection is kept may differ: bytes behind the answer speak against it, where they have come.
  if (whole == HttpAnswer::State::done) require(reused.body() == fresh.body());
  const auto url = warmroute::poll::parse_url(bytes);
  if (url) require(!url->host.empty() && !url->port.empty() && !url->path.empty() && url->path[0] == '/');
  else require(!url.error().message.empty());
  return 0;
}
