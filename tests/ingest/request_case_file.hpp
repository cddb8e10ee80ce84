// Reads the case files of tests/data: one JSON object a line; bodies as text, base64, or generator pieces.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/ingest/request_body.hpp"

namespace warmroute::test {

inline std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(std::string(WARMROUTE_TEST_DATA "/") + file);
  EXPECT_TRUE(in.good()) << file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) continue;
    bits = (bits << 6) | static_cast<unsigned>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>((bits >> count) & 0xff));
    }
  }
  return bytes;
}

inline std::string generated(simdjson::dom::array pieces) {
  std::string text;
  for (const simdjson::dom::object piece : pieces) {
    if (std::string_view literal; piece["lit"].get(literal) == simdjson::SUCCESS) text += literal;
    std::string_view repeated;
    if (piece["repeat"].get(repeated) != simdjson::SUCCESS) continue;
    for (std::uint64_t i = 0, n = piece["times"].get_uint64(); i < n; ++i) text += repeated;
  }
  return text;
}

/// The body under `name` ("body", "a", "b"), or generated from `name`_gen.
inline std::string body_of(simdjson::dom::object line, const std::string& name) {
  if (simdjson::dom::array pieces; line[name + "_gen"].get(pieces) == simdjson::SUCCESS) return generated(pieces);
  const std::string body(line[name].get_string().value());
  std::string_view encoding;
  if (line["body_encoding"].get(encoding) == simdjson::SUCCESS && encoding == "base64") return from_base64(body);
  return body;
}

inline BodyApi api_of(std::string_view name) {
  if (name == "chat") return BodyApi::chat;
  if (name == "completions") return BodyApi::completions;
  if (name == "responses") return BodyApi::responses;
  if (name == "embeddings") return BodyApi::embeddings;
  EXPECT_EQ(name, "messages");
  return BodyApi::messages;
}

struct CaseBody {
  std::string id;
  BodyApi api;
  std::string body;
};

/// Every body of both files, those up to `max_bytes`.
inline std::vector<CaseBody> all_bodies(std::size_t max_bytes) {
  std::vector<CaseBody> bodies;
  simdjson::dom::parser parser;
  const auto add = [&](std::string id, std::string_view api, std::string body) {
    if (body.size() <= max_bytes) bodies.push_back({std::move(id), api_of(api), std::move(body)});
  };
  for (const std::string& line : lines_of("request_cases.jsonl")) {
    const simdjson::dom::object o = parser.parse(line).get_object();
    add(std::string(o["id"].get_string().value()), o["api"].get_string().value(), body_of(o, "body"));
  }
  for (const std::string& line : lines_of("request_relations.jsonl")) {
    const simdjson::dom::object o = parser.parse(line).get_object();
    const std::string id(o["id"].get_string().value());
    add(id + "/a", o["api_a"].get_string().value(), body_of(o, "a"));
    add(id + "/b", o["api_b"].get_string().value(), body_of(o, "b"));
  }
  return bodies;
}

}  // namespace warmroute::test
