// Reads tests/data/kv_event_cases.jsonl: each line is one message, as frames in hex or generated, and what it says.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/ingest/kv_events.hpp"

namespace warmroute::test {

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

struct KvCase {
  std::string id;
  std::string line;  // JSON
  KvSocket socket = KvSocket::subscriber;
  std::vector<std::string> frames;

  [[nodiscard]] std::vector<std::string_view> views() const { return {frames.begin(), frames.end()}; }
};

/// {hex} | {repeat, count} | {records: [{hex} | {be: width, start, step}], count}
inline std::string kv_generated(simdjson::dom::array parts) {
  std::string out;
  for (const simdjson::dom::object part : parts) {
    std::string_view text;
    if (part["hex"].get(text) == simdjson::SUCCESS) {
      out += from_hex(text);
      continue;
    }
    const std::uint64_t count = part["count"].get_uint64();
    simdjson::dom::array records;
    const bool repeated = part["repeat"].get(text) == simdjson::SUCCESS;
    for (std::uint64_t n = 0; n < count; ++n) {
      if (repeated) {
        out += from_hex(text);
        continue;
      }
      for (const simdjson::dom::object record : part["records"].get_array()) {
        std::string_view hex;
        if (record["hex"].get(hex) == simdjson::SUCCESS) {
          out += from_hex(hex);
          continue;
        }
        const auto width = static_cast<int>(record["be"].get_uint64().value());
        const std::uint64_t v = std::stoull(std::string(record["start"].get_string().value())) +
                                n * std::stoull(std::string(record["step"].get_string().value()));
        for (int b = width - 1; b >= 0; --b) out.push_back(static_cast<char>(v >> (8 * b) & 0xff));
      }
    }
  }
  return out;
}

inline std::vector<KvCase> kv_cases() {
  std::ifstream in(WARMROUTE_TEST_DATA "/kv_event_cases.jsonl");
  EXPECT_TRUE(in.good());
  std::vector<KvCase> cases;
  simdjson::dom::parser parser;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    const simdjson::dom::object o = parser.parse(line).get_object();
    KvCase c;
    c.id = std::string(o["id"].get_string().value());
    c.line = line;
    std::string_view socket;
    if (o["kind"].get_string().value() != "live") c.socket = KvSocket::dealer;
    if (o["socket"].get(socket) == simdjson::SUCCESS && socket == "REQ") c.socket = KvSocket::req;
    simdjson::dom::array frames;
    if (o["frames_hex"].get(frames) == simdjson::SUCCESS) {
      for (const std::string_view hex : frames) c.frames.push_back(from_hex(hex));
    } else {
      for (const simdjson::dom::array parts : o["frames_gen"].get_array()) c.frames.push_back(kv_generated(parts));
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace warmroute::test
