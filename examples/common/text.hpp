/// Small text work of HTTP programs: base URLs, JSON strings, OpenAI-shaped errors, server-sent events.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"

namespace warmroute::examples {

struct BaseUrl {
  std::string host;
  std::uint16_t port = 80;
  std::string path;  ///< without a slash at its end, e.g. "" or "/api"
};

/// Reads "http://host:port/path"; scheme, port and path may be left out, an IPv6 host stands in brackets. errors:
/// invalid_value.
[[nodiscard]] inline Result<BaseUrl> parse_base_url(std::string_view url) {
  const std::string given{url};
  const auto bad = [&given](const char* why) {
    return Error{Code::invalid_value, "\"" + given + "\": " + why, kNoOffset};
  };
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) {
    if (url.substr(0, scheme) != "http") return bad("only http:// is supported here");
    url.remove_prefix(scheme + 3);
  }
  BaseUrl result;
  std::string_view authority = url.substr(0, url.find('/'));
  url.remove_prefix(authority.size());
  while (!url.empty() && url.back() == '/') url.remove_suffix(1);
  result.path = url;
  std::string_view port;
  if (const auto close = authority.find(']');
      !authority.empty() && authority.front() == '[' && close != std::string_view::npos) {
    result.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    result.host = authority.substr(0, authority.find(':'));
    port = authority.substr(result.host.size());
  }
  if (result.host.empty()) return bad("there is no host");
  if (!port.empty()) {
    const char* end = port.data() + port.size();
    const auto [stop, error] = std::from_chars(port.data() + 1, end, result.port);
    if (port.front() != ':' || error != std::errc{} || stop != end || result.port == 0)
      return bad("the port is not 1 to 65535");
  }
  return result;
}

/// Appends `text` as the inside of a JSON string. Bytes from 0x80 on are passed through: the text must be UTF-8.
inline void append_json_escaped(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20) {
      out += c;
    } else {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
}

[[nodiscard]] inline std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  out += '"';
  return out;
}

/// returns: the body that OpenAI clients understand: {"error": {"message", "type", "param", "code"}}.
[[nodiscard]] inline std::string openai_error(std::string_view message, std::string_view type, std::string_view code) {
  return "{\"error\":{\"message\":" + json_quoted(message) + ",\"type\":" + json_quoted(type) +
         ",\"param\":null,\"code\":" + (code.empty() ? "null" : json_quoted(code)) + "}}";
}

/// returns: the text with %XX resolved; what is none stays.
[[nodiscard]] inline std::string url_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const begin = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(begin, begin + 2, value, 16).ptr == begin + 2) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Cuts a stream of server-sent events into the contents of its `data:` lines, however the bytes are split on arrival.
class SseSplitter {
 public:
  /// Calls on_data(std::string_view) for each complete data line in order; the view lives until it returns.
  template <class OnData>
  void feed(std::string_view bytes, OnData&& on_data) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      if (end == std::string_view::npos) {
        pending_ += bytes;
        return;
      }
      if (pending_.empty()) {
        handle(bytes.substr(0, end), on_data);
      } else {
        pending_ += bytes.substr(0, end);
        handle(pending_, on_data);
        pending_.clear();
      }
      bytes.remove_prefix(end + 1);
    }
  }

 private:
  template <class OnData>
  static void handle(std::string_view line, OnData&& on_data) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.substr(0, 5) != "data:") return;
    line.remove_prefix(5);
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    on_data(line);
  }
  std::string pending_;
};

}  // namespace warmroute::examples
