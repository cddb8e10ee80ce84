#include "replay/workload.hpp"

#include <algorithm>

#include "warmroute/trace/sample.hpp"

namespace warmroute::replay {

void append_words(std::string& out, TextKind kind, std::uint64_t seed, std::int64_t tokens) {
  constexpr std::string_view kConsonants = "bcdfghjklmnprstvwxzt";
  constexpr std::string_view kVowels = "aeiou";
  static_assert(kConsonants.size() == 20 && kVowels.size() == 5);
  trace::SplitMix64 random{trace::SplitMix64{seed ^ (static_cast<std::uint64_t>(kind) << 60)}.next()};
  out.reserve(out.size() + static_cast<std::size_t>(std::max<std::int64_t>(0, tokens)) * 4);
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (i % 4 == 0) bits = random.next();  // 16 bits a word
    const auto draw = static_cast<std::size_t>(bits & 0xFFFF);
    bits >>= 16;
    out += kConsonants[draw % 20];
    out += kVowels[draw / 20 % 5];
    out += kConsonants[draw / 100 % 20];
    out += ' ';
  }
}

std::string trace_prompt(const trace::TraceRecord& record, std::size_t index, std::uint64_t salt) {
  std::string text;
  text.reserve(static_cast<std::size_t>(record.input_tokens) * 4);
  const std::uint64_t offset = salt << 40;
  const auto whole =
      std::min(static_cast<std::int64_t>(record.blocks.size()), record.input_tokens / record.block_tokens);
  for (std::int64_t i = 0; i < whole; ++i) {
    append_words(text, TextKind::block, record.blocks[static_cast<std::size_t>(i)] + offset, record.block_tokens);
  }
  append_words(text, TextKind::unique, index + offset, record.input_tokens - whole * record.block_tokens);
  return text;
}

std::string chat_body(std::string_view model, const std::vector<Message>& messages, std::int64_t max_tokens) {
  std::string body = "{\"model\":\"";
  body.append(model).append("\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":");
  body.append(std::to_string(max_tokens)).append(",\"messages\":[");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0) body += ',';
    body.append("{\"role\":\"")
        .append(messages[i].role)
        .append("\",\"content\":\"")
        .append(messages[i].content)
        .append("\"}");
  }
  return body + "]}";
}

}  // namespace warmroute::replay
