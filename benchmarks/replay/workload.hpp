/// Prompts of a replay: plain ASCII words, equal where the trace says that prefixes are equal.
/// A word is three letters and a space: one token of the examples' toy tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/trace/trace.hpp"

namespace warmroute::replay {

/// One message of a chat. Contents are plain ASCII without quotes.
struct Message {
  std::string_view role;
  std::string content;
};

/// Appends `tokens` words that depend on (kind, seed) alone; fewer words are a prefix of more.
enum class TextKind : std::uint64_t { block = 1, unique = 2, system = 3, turn = 4 };
void append_words(std::string& out, TextKind kind, std::uint64_t seed, std::int64_t tokens);

/// returns: the prompt of record number `index`: each whole block as the text of its id, the rest as text of its own.
/// `salt` makes the texts of one run differ from those of another.
[[nodiscard]] std::string trace_prompt(const trace::TraceRecord& record, std::size_t index, std::uint64_t salt);

/// returns: the body of a streaming chat completion that reports its usage.
[[nodiscard]] std::string chat_body(std::string_view model, const std::vector<Message>& messages,
                                    std::int64_t max_tokens);

}  // namespace warmroute::replay
