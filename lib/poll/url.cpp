#include "poll/url.hpp"

#include <algorithm>
#include <charconv>

namespace warmroute::poll {

Result<Url> parse_url(std::string_view text) {
  // Nothing in it may end a line of the request; and it is shown in messages, which are text.
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  const std::string given = plain ? "'" + std::string(text) + "': " : "url: ";
  const auto bad = [&](std::string_view why) {
    return Error{Code::invalid_argument, given + std::string(why), kNoOffset};
  };
  if (!plain) return bad("must be printable ASCII without blanks");
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
    if (text.substr(0, scheme) != "http") return bad("only http:// can be asked");
    text.remove_prefix(scheme + 3);
  }
  text = text.substr(0, text.find('#'));
  Url url;
  const std::string_view authority = text.substr(0, text.find_first_of("/?"));
  url.path = text.substr(authority.size());
  if (url.path.empty()) url.path = "/metrics";
  if (url.path.front() == '?') url.path.insert(0, "/metrics");
  url.authority = authority;
  if (authority.find('@') != std::string_view::npos) return bad("names and passwords are not sent");
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return bad("'[' without ']'");
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    url.host = authority.substr(0, authority.find(':'));
    port = authority.substr(url.host.size());
    if (std::count(port.begin(), port.end(), ':') > 1) return bad("an IPv6 address stands in brackets");
  }
  if (url.host.empty()) return bad("there is no host");
  url.port = "80";
  if (port.empty()) return url;
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), number);
  if (port.front() != ':' || error != std::errc{} || end != port.data() + port.size() || number == 0) {
    return bad("the port is not 1 to 65535");
  }
  url.port = std::to_string(number);
  return url;
}

}  // namespace warmroute::poll
