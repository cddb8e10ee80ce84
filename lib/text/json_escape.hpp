// Writing JSON strings. Private to lib.
#pragma once

#include <string>
#include <string_view>

namespace warmroute::text {

// Appends `value` as a JSON string: quotes, backslashes and control characters escaped, everything else byte for byte.
inline void append_json_string(std::string& out, std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace warmroute::text
