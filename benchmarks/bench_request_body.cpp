// DECIDE (c) of the performance targets, its first half: from the bytes of a chat body to the blocks of its prompt,
// strict validation included. Beside it what simdjson's On-Demand needs to walk the same body without any of our rules.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <string>

#include "warmroute/ingest/request_body.hpp"

namespace {

using namespace std::literals;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Words of 1 to 12 letters, a line feed (escaped in JSON) every eight words, now and then a quote or a letter beyond
// ASCII.
void add_prose(std::string& out, std::size_t bytes, std::uint64_t& seed) {
  const std::size_t end = out.size() + bytes;
  for (std::uint64_t word = 0; out.size() < end; ++word) {
    const std::uint64_t r = seed = mix(seed);
    for (std::uint64_t i = 0, n = 1 + r % 12; i < n; ++i) out.push_back(static_cast<char>('a' + (r >> (4 * i)) % 26));
    out += word % 8 == 7 ? "\\n" : word % 61 == 60 ? "\\\"" : word % 97 == 96 ? " caf\xc3\xa9 " : " ";
  }
}

// A conversation with one tool and a system prompt of a quarter of it; turns of about 600 bytes.
std::string chat_body(std::size_t bytes) {
  std::uint64_t seed = 7;
  std::string body =
      R"({"model":"harbour-7b","stream":true,"stream_options":{"include_usage":true},"temperature":0.2,)"
      R"("max_completion_tokens":512,"user":"desk-4","prompt_cache_key":"harbour-desk-v3","tools":[{"type":)"
      R"("function","function":{"name":"get_tide","description":"Tide table","parameters":{"type":"object",)"
      R"("properties":{"harbour":{"type":"string"},"day":{"type":"string"}},"required":["harbour"]}}}],)"
      R"("messages":[{"role":"system","content":")";
  add_prose(body, bytes / 4, seed);
  for (bool user = true; body.size() < bytes; user = !user) {
    body += user ? R"("},{"role":"user","content":")" : R"("},{"role":"assistant","content":")";
    add_prose(body, std::min<std::size_t>(600, bytes - std::min(bytes, body.size())), seed);
  }
  return body + R"("}]})";
}

// One id for every four bytes: what a tokenizer costs is not measured here.
std::size_t toy_encode(void*, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  const std::size_t count = prompt.size() / 4;
  if (count <= capacity) std::memcpy(out, prompt.data(), count * 4);
  return count;
}

void parse_chat(benchmark::State& state, const warmroute::RequestBodyOptions& options) {
  const std::string body = chat_body(static_cast<std::size_t>(state.range(0)) << 10);
  warmroute::RequestBodyParser parser;
  std::size_t blocks = 0;
  for (auto _ : state) {
    const auto parsed = parser.parse(warmroute::BodyApi::chat, body, options);
    if (!parsed.ok()) return state.SkipWithError(parsed.error().message.c_str());
    blocks = parsed->blocks.size();
    benchmark::DoNotOptimize(parsed->blocks.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(body.size()) * state.iterations());
  state.counters["blocks"] = static_cast<double>(blocks);
}

void BM_RequestBody(benchmark::State& state) { parse_chat(state, {}); }
BENCHMARK(BM_RequestBody)->ArgName("KiB")->Arg(4)->Arg(32)->Arg(256);

void BM_RequestBodyTokenized(benchmark::State& state) {
  warmroute::RequestBodyOptions options;
  options.tokenizer.encode = toy_encode;
  parse_chat(state, options);
}
BENCHMARK(BM_RequestBodyTokenized)->ArgName("KiB")->Arg(4)->Arg(32)->Arg(256);

void BM_RequestBodyTokenIds(benchmark::State& state) {
  std::string body = R"({"model":"harbour-7b","prompt":[1)";
  std::uint64_t seed = 7;
  for (std::int64_t i = 1; i < state.range(0); ++i) body += "," + std::to_string((seed = mix(seed)) % 128'000);
  body += "]}";
  warmroute::RequestBodyParser parser;
  for (auto _ : state) {
    const auto parsed = parser.parse(warmroute::BodyApi::completions, body);
    if (!parsed.ok()) return state.SkipWithError(parsed.error().message.c_str());
    benchmark::DoNotOptimize(parsed->blocks.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(body.size()) * state.iterations());
}
BENCHMARK(BM_RequestBodyTokenIds)->ArgName("ids")->Arg(1'000)->Arg(10'000)->Arg(65'000);

// simdjson On-Demand: the padded copy, and every string unescaped once, every number's token seen. No order of members,
// no repeated keys, no frames, no hashes; numbers and the strings that are no value of a message would need a second
// look.
void walk(simdjson::ondemand::value value, std::size_t& bytes) {
  switch (value.type()) {
    case simdjson::ondemand::json_type::object:
      for (auto field : value.get_object()) {
        bytes += field.unescaped_key().value().size();
        walk(field.value(), bytes);
      }
      break;
    case simdjson::ondemand::json_type::array:
      for (auto element : value.get_array()) walk(element.value(), bytes);
      break;
    case simdjson::ondemand::json_type::string: bytes += value.get_string().value().size(); break;
    default: bytes += value.raw_json_token().size(); break;
  }
}

void BM_SimdjsonWalk(benchmark::State& state) {
  const std::string body = chat_body(static_cast<std::size_t>(state.range(0)) << 10);
  std::string padded;
  padded.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::parser parser;
  for (auto _ : state) {
    padded.assign(body);
    simdjson::ondemand::document document;
    if (parser.iterate(padded.data(), padded.size(), padded.capacity()).get(document) != simdjson::SUCCESS) {
      return state.SkipWithError("not iterated");
    }
    std::size_t bytes = 0;
    for (auto field : document.get_object()) {
      bytes += field.unescaped_key().value().size();
      walk(field.value(), bytes);
    }
    benchmark::DoNotOptimize(bytes);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(body.size()) * state.iterations());
}
BENCHMARK(BM_SimdjsonWalk)->ArgName("KiB")->Arg(4)->Arg(32)->Arg(256);

void BM_SimdjsonUtf8(benchmark::State& state) {
  const std::string body = chat_body(static_cast<std::size_t>(state.range(0)) << 10);
  for (auto _ : state) benchmark::DoNotOptimize(simdjson::validate_utf8(body));
  state.SetBytesProcessed(static_cast<std::int64_t>(body.size()) * state.iterations());
}
BENCHMARK(BM_SimdjsonUtf8)->ArgName("KiB")->Arg(32);

}  // namespace
