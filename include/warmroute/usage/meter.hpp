/// Reads what a request used from its answer, while the bytes pass: plain JSON, server-sent events, a JSON array in
/// pieces, AWS event streams, whatever the provider (OpenAI and compatible servers, Anthropic, Gemini, Bedrock, Cohere,
/// llama.cpp), told apart by the bytes. Also says where the first token ended.
/// Invariants: looks and never changes or delays a byte; text is never searched: what a model wrote may look like a
/// usage object; the result does not depend on where the bytes were cut; memory is constant however large an event is.
/// Does not: decompress (strip accept-encoding upstream), count tokens itself, price anything, read a clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "warmroute/usage/usage.hpp"

namespace warmroute {

/// Whose vocabulary an answer speaks. `automatic` tells by the members' names and is right for all of them; naming the
/// API settles what cannot be told: that an answer without output count is one of embeddings, and whether an
/// input_tokens beside cache counts is inclusive (OpenAI) or not (Anthropic). Numbers are fixed and only appended.
enum class AnswerApi : std::uint8_t {
  automatic = 0,
  openai = 1,      ///< chat completions, completions, and servers compatible with them
  responses = 2,   ///< OpenAI Responses
  embeddings = 3,  ///< OpenAI embeddings: no output
  messages = 4,    ///< Anthropic Messages
  gemini = 5,      ///< generateContent of Gemini and Vertex
  bedrock = 6,     ///< Converse and InvokeModel
  cohere = 7,
  llamacpp = 8,  ///< native /completion
};

/// What to believe where a deployment is known to differ from the rules.
enum class Belief : std::uint8_t { by_rule = 0, yes = 1, no = 2 };

/// Facts about one deployment that its answers do not tell. They override the rules.
struct MeterProfile {
  /// The input count contains the cached and written tokens. By rule: yes for OpenAI and Gemini, no for Anthropic and
  /// Bedrock, corrected by the total. Needed for Bedrock's OpenAI-family models (yes) and servers that put the
  /// inclusive count into Anthropic's input_tokens (yes).
  Belief input_includes_cache = Belief::by_rule;
  /// The output count contains the reasoning tokens. By rule: the total decides, and without one, yes.
  Belief output_includes_reasoning = Belief::by_rule;
  /// The answer's total is wrong or means something else: never used.
  bool ignore_total = false;
  /// The answer names a default tier even when another served: the requested one is believed.
  bool trust_requested_tier = false;
};

struct MeterOptions {
  AnswerApi api = AnswerApi::automatic;
  MeterProfile profile{};
  /// The tier the request asked for: reported where the answer names none. lifetime: copied, 128 bytes at most.
  std::string_view requested_tier{};
};

/// One answer, fed piece by piece. threads: one at a time. alloc: at construction (13 KiB), and
/// once more for the first AWS event stream (7 KiB).
/// cost: bench_meter, see benchmarks/README.md.
class Meter {
 public:
  explicit Meter(const MeterOptions& options = {});
  ~Meter();
  Meter(Meter&&) noexcept;
  Meter& operator=(Meter&&) noexcept;

  /// For the next answer. alloc: none. A meter that is used again costs less than a new one.
  void reset(const MeterOptions& options = {}) noexcept;

  /// The next bytes of the answer's body, in any pieces, without HTTP's chunk framing.
  /// returns: true once: when the first token ended in these bytes. A stream's is in the first event with output; of an
  /// answer that is no stream all tokens are generated before its first byte.
  bool feed(std::string_view bytes) noexcept;
  /// The body ended, or was cut off. An event that is whole but lacks its end is taken: a first token in it is known only
  /// now, by first_token_end(). Further bytes are ignored.
  void finish() noexcept;

  /// What is known so far; after finish() the result. lifetime: of views, until the next call that is not const.
  /// cost: recomputed at each call, tens of nanoseconds.
  [[nodiscard]] UsageReport report() const noexcept;

  /// returns: report().complete. cost: less than a report's.
  [[nodiscard]] bool complete() const noexcept;
  /// returns: a number that is another one whenever report() would be, until reset().
  [[nodiscard]] std::uint64_t revision() const noexcept;
  /// returns: how many bytes of the body had come when the first token ended; nullopt: not yet.
  [[nodiscard]] std::optional<std::uint64_t> first_token_end() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< fed so far
  /// returns: whether the answer is a stream of events; false before that is known.
  [[nodiscard]] bool is_stream() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A whole answer at once. lifetime: `meter` holds what the report views.
UsageReport read_usage(Meter& meter, std::string_view body, const MeterOptions& options = {}) noexcept;

}  // namespace warmroute
