// Where a page is: the parts of an http URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"

namespace warmroute::poll {

struct Url {
  std::string host;       // without brackets
  std::string port;       // a number
  std::string authority;  // as written, for the Host field
  std::string path;       // with its query
};

// shape: as MetricsTarget::url. errors: invalid_argument.
Result<Url> parse_url(std::string_view text);

}  // namespace warmroute::poll
