// Bytes of answers through the meter: content events of several APIs, events with counts, plain bodies. What comes after: costs.
// Args of streams: bytes per feed(), 0 = one event each.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/request_side.hpp"

namespace {

using warmroute::Meter;

constexpr int kEvents = 512;
const char* const kWords[] = {
    " the", " prefix", " cache", ",", " and", " \\\"quoted\\\"", "\\n\\n", " replica", "s", " Gr\xC3\xB6\xC3\x9F\x65"};

enum class Kind { chat, chat_usage_null, responses, messages, gemini, continuous };

std::string event(Kind kind, int i) {
  const char* const word = kWords[static_cast<std::size_t>(i) % std::size(kWords)];
  char text[1024];
  switch (kind) {
    case Kind::chat:
    case Kind::chat_usage_null:
      std::snprintf(
          text, sizeof text,
          R"(data: {"id":"chatcmpl-9f1c2ab34d5e6f708192a3b4c5d6e7f8","object":"chat.completion.chunk","created":1790000000,)"
          R"("model":"meta-llama/Llama-3.3-70B-Instruct","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,)"
          R"("finish_reason":null}]%s})",
          word, kind == Kind::chat ? "" : R"(,"usage":null)");
      break;
    case Kind::responses:
      std::snprintf(
          text, sizeof text,
          "event: response.output_text.delta\n"
          R"(data: {"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_68b1f3a1c2d48191",)"
          R"("output_index":0,"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"%08x"})",
          i, word, static_cast<unsigned>(i) * 2654435761u);
      break;
    case Kind::messages:
      std::snprintf(text, sizeof text,
                    "event: content_block_delta\n"
                    R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}})",
                    word);
      break;
    case Kind::gemini:
      std::snprintf(
          text, sizeof text,
          R"(data: {"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"index":0}],"usageMetadata":)"
          R"({"promptTokenCount":9000,"candidatesTokenCount":%d,"totalTokenCount":%d,"cachedContentTokenCount":8192,)"
          R"("promptTokensDetails":[{"modality":"TEXT","tokenCount":9000}]},"modelVersion":"gemini-2.5-pro",)"
          R"("responseId":"aBcDeFgHiJkL"})",
          word, i, 9000 + i);
      break;
    case Kind::continuous:
      std::snprintf(
          text, sizeof text,
          R"(data: {"id":"chatcmpl-9f1c2ab34d5e6f708192a3b4c5d6e7f8","object":"chat.completion.chunk","created":1790000000,)"
          R"("model":"meta-llama/Llama-3.3-70B-Instruct","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,)"
          R"("finish_reason":null}],"usage":{"prompt_tokens":4096,"total_tokens":%d,"completion_tokens":%d,)"
          R"("prompt_tokens_details":{"cached_tokens":4080}}})",
          word, 4096 + i, i);
      break;
  }
  return std::string(text) + "\n\n";
}

std::vector<std::string> pieces_of(Kind kind, std::size_t piece_bytes) {
  std::vector<std::string> pieces;
  std::string all;
  for (int i = 1; i <= kEvents; ++i) {
    pieces.push_back(event(kind, i));
    all += pieces.back();
  }
  if (piece_bytes == 0) return pieces;
  pieces.clear();
  for (std::size_t at = 0; at < all.size(); at += piece_bytes) pieces.push_back(all.substr(at, piece_bytes));
  return pieces;
}

template <Kind kind>
void BM_Stream(benchmark::State& state) {
  const auto pieces = pieces_of(kind, static_cast<std::size_t>(state.range(0)));
  std::size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  Meter meter;
  for (auto _ : state) {
    meter.reset();
    for (const std::string& piece : pieces) benchmark::DoNotOptimize(meter.feed(piece));
    meter.finish();
    benchmark::DoNotOptimize(meter.report());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["ns_per_event"] = benchmark::Counter(static_cast<double>(state.iterations()) * kEvents * 1e-9,
                                                      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["event_bytes"] = static_cast<double>(bytes) / kEvents;
}
// One event a piece, as servers send them; 1,448 bytes, as packets bring them; 16 KiB, as a busy proxy reads them.
#define WARMROUTE_STREAM(kind) BENCHMARK(BM_Stream<Kind::kind>)->Name("stream/" #kind)->Arg(0)->Arg(1448)->Arg(16'384)
WARMROUTE_STREAM(chat);
WARMROUTE_STREAM(chat_usage_null);
WARMROUTE_STREAM(responses);
WARMROUTE_STREAM(messages);
WARMROUTE_STREAM(gemini);      // counts in every event
WARMROUTE_STREAM(continuous);  // the same, of vLLM's continuous_usage_stats

/// The one event with counts at the end of a chat.
void BM_UsageEvent(benchmark::State& state) {
  const std::string text =
      R"(data: {"id":"chatcmpl-9f1c2ab34d5e6f708192a3b4c5d6e7f8","object":"chat.completion.chunk","created":1790000000,)"
      R"("model":"gpt-5","service_tier":"default","choices":[],"usage":{"prompt_tokens":5120,"completion_tokens":210,"total_tokens":5330,)"
      R"("prompt_tokens_details":{"cached_tokens":4864,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":128,)"
      R"("audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}})"
      "\n\n";
  Meter meter;
  meter.feed("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n");
  std::string other = text;
  other.replace(other.find("210"), 3, "211");  // else the second one is known already
  other.replace(other.find("5330"), 4, "5331");
  const bool with_report = state.range(0) != 0;
  bool odd = false;
  for (auto _ : state) {
    meter.feed(odd ? text : other);
    odd = !odd;
    if (with_report) benchmark::DoNotOptimize(meter.report());
  }
}
BENCHMARK(BM_UsageEvent)->Name("usage_event")->ArgName("report")->Arg(0)->Arg(1);

std::string chat_body(std::size_t bytes) {
  std::string content;
  for (std::size_t i = 0; content.size() < bytes; ++i) content += kWords[i % std::size(kWords)];
  return R"({"id":"cc","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":")" +
         content +
         R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":5120,"completion_tokens":210,"total_tokens":5330}})";
}

std::string embeddings_body(std::size_t bytes) {
  std::string list;
  for (int i = 0; list.size() < bytes; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%s%.9f", i == 0 ? "" : ",", 1.0 / (i + 3));
    list += text;
  }
  return R"({"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[)" + list +
         R"(]}],"usage":{"prompt_tokens":730,"total_tokens":730}})";
}

template <std::string make(std::size_t)>
void BM_Body(benchmark::State& state) {
  const std::string body = make(static_cast<std::size_t>(state.range(0)));
  Meter meter;
  for (auto _ : state) benchmark::DoNotOptimize(warmroute::read_usage(meter, body));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
}
BENCHMARK(BM_Body<chat_body>)->Name("body/chat")->Arg(1'024)->Arg(32'768);
BENCHMARK(BM_Body<embeddings_body>)->Name("body/embeddings")->Arg(32'768);

/// The way out of a stream whose usage chunk is to be hidden.
void BM_Filter(benchmark::State& state) {
  const auto pieces = pieces_of(Kind::chat, 0);
  std::size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  warmroute::UsageChunkFilter filter;
  std::string out;
  for (auto _ : state) {
    filter.reset();
    for (const std::string& piece : pieces) {
      out.clear();
      filter.feed(piece, out);
      benchmark::DoNotOptimize(out.data());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_Filter)->Name("usage_chunk_filter/chat");

/// A request's cost among 5,000 models: the name as it is, and one that is found without its date.
void BM_Cost(benchmark::State& state) {
  std::string json = "{";
  for (int i = 0; i < 5'000; ++i) {
    json += (i == 0 ? "\"model-" : ",\"model-") + std::to_string(i) +
            R"(":{"input_cost_per_token":1e-6,"output_cost_per_token":4e-6,"cache_read_input_token_cost":1e-7,)"
            R"("input_cost_per_token_above_200k_tokens":2e-6,"output_cost_per_token_above_200k_tokens":6e-6,)"
            R"("input_cost_per_token_priority":4e-6,"output_cost_per_token_priority":8e-6}})";
    json.pop_back();
  }
  json += "}";
  const auto table = warmroute::PriceTable::from_json(json);
  if (!table) return state.SkipWithError("no table");
  warmroute::UsageReport report;
  report.usage.input_tokens = 5'120;
  report.usage.cached_input_tokens = 4'864;
  report.usage.output_tokens = 210;
  report.service_tier = "default";
  report.model = state.range(0) == 0 ? "model-2500" : "model-2500-2026-01-31";
  for (auto _ : state) benchmark::DoNotOptimize(table->cost(report));
}
BENCHMARK(BM_Cost)->Name("cost")->Arg(0)->Arg(1);

}  // namespace
