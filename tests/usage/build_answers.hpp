// Makes answers for tests: events, bodies, AWS frames.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "warmroute/usage/usage.hpp"

namespace warmroute::test {

inline std::string event(std::string_view data) { return "data: " + std::string(data) + "\n\n"; }

/// A plain chat completion with these members of `usage`.
inline std::string chat(std::string_view usage) {
  return R"({"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{)" +
         std::string(usage) + "}}";
}

inline std::string big_endian(std::size_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
  return out;
}
inline std::size_t crc_of(std::string_view bytes) {
  return ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
}

/// One frame of an AWS event stream; without an event's name, of an exception.
inline std::string aws_frame(std::string_view event_type, std::string_view payload) {
  std::string headers;
  const auto header = [&](std::string_view name, std::string_view value) {
    headers += static_cast<char>(name.size());
    headers += name;
    headers += '\7';
    headers += static_cast<char>(value.size() >> 8);
    headers += static_cast<char>(value.size() & 0xFF);
    headers += value;
  };
  header(event_type.empty() ? ":exception-type" : ":event-type",
         event_type.empty() ? "throttlingException" : event_type);
  header(":message-type", event_type.empty() ? "exception" : "event");
  std::string frame = big_endian(16 + headers.size() + payload.size()) + big_endian(headers.size());
  frame += big_endian(crc_of(frame)) + headers + std::string(payload);
  return frame + big_endian(crc_of(frame));
}

/// The payload of InvokeModel's frames: base64 in JSON, slashes escaped as some writers do.
inline std::string as_bytes(std::string_view json) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < json.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < json.size() ? static_cast<unsigned char>(json[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = kAlphabet[group >> (18 - 6 * k) & 63];
      if (i + k > json.size()) {
        out += '=';
      } else if (c == '/') {
        out += "\\/";
      } else {
        out += c;
      }
    }
  }
  return R"({"bytes":")" + out + R"(","p":"abcdefgh"})";
}

/// "input/cached/write -> output(reasoning)", "-" for unknown, "..." behind partial counts.
inline std::string counts_of(const UsageReport& report) {
  const auto text = [](UsageCount count) { return count ? std::to_string(*count) : std::string("-"); };
  const Usage& usage = report.usage;
  std::string out = text(usage.input_tokens) + "/" + text(usage.cached_input_tokens) + "/" +
                    text(usage.cache_write_input_tokens) + " -> " + text(usage.output_tokens);
  if (usage.reasoning_output_tokens) out += "(" + text(usage.reasoning_output_tokens) + ")";
  return report.complete ? out : out + " ...";
}

}  // namespace warmroute::test
