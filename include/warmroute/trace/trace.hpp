/// Request traces: one internal record, a streaming reader of the forms in which traces are published (plain or gzip),
/// and the arithmetic of a replay: arrivals spread inside quantised timestamps, the speed for a wanted load, the best
/// possible hit ratio. Writing: trace/trace_writer.hpp.
///
/// Invariant: everything is integer arithmetic on the trace's own numbers, so that two tools replay the same requests
/// at the same instants. Does not: hold prompt text, send anything, read a clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/trace/replica_model.hpp"

namespace warmroute::trace {

/// Tokens per block id in Mooncake's published traces.
inline constexpr std::int64_t kMooncakeBlockTokens = 512;

/// One request. What a trace does not say stays as it is here.
struct TraceRecord {
  std::int64_t arrival_us = 0;  ///< since the start of the trace; of conversations (weka): since their own
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;     ///< 0: the trace has no answer for it
  std::uint64_t session = 0;          ///< hash of the session id; 0: none
  std::vector<std::uint64_t> blocks;  ///< an id stands for its block and all before it; the last block may be partial
  std::int64_t block_tokens = kMooncakeBlockTokens;  ///< of a block in `blocks`

  std::string model{};
  std::string adapter{};
  std::string request_class{};  ///< what kind of request the trace calls it
  std::optional<std::int32_t> priority{};
  std::optional<std::int64_t> max_output_tokens{};
  std::optional<std::int64_t> cached_tokens{};  ///< as the engine counted them when it was recorded
  std::optional<std::int64_t> ttft_us{};        ///< time to its first token when it was recorded
  std::optional<bool> stream{};
  bool cancelled = false;  ///< it ended without its whole answer: it failed, or the client went away

  std::uint32_t follows = 0;  ///< it waits for the end of the record that came so many before it; 0: for nobody
  std::int64_t think_us = 0;  ///< and then so much longer

  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

struct TraceLimits {
  std::size_t max_line_bytes = std::size_t{16} << 20;
  std::int64_t max_tokens = 100'000'000;         ///< per count; larger is refused as a broken record
  std::int64_t max_blocks = 16'000'000;          ///< of one prompt, as above
  std::size_t max_chats = std::size_t{1} << 20;  ///< whose conversation is remembered (qwen); older ones are forgotten
};

/// The published forms. Numbers are fixed and only appended.
enum class TraceFormat : std::uint8_t {
  automatic = 0,  ///< told by the first line
  mooncake = 1,   ///< JSON lines, ms, ids of 512-token blocks; and what append_mooncake_line adds
  qwen = 2,       ///< Qwen-Bailian: JSON lines, seconds, ids of 16-token blocks, chats with parents
  burstgpt = 3,   ///< CSV, seconds, model, session in its third part; no prompts. No answer means that it failed
  azure = 4,      ///< Azure LLM inference (2023 to 2025): CSV, wall-clock times; no prompts
  ragpulse = 5,   ///< JSON lines, seconds as text and not in order, ids of pieces of unequal length
  weka = 6,       ///< kv-cache-tester: JSON, a coding agent's conversation a line, with its sub-agents
};
inline constexpr std::array<std::string_view, 7> kTraceFormatNames{"automatic", "mooncake", "qwen", "burstgpt",
                                                                   "azure",     "ragpulse", "weka"};
constexpr std::string_view trace_format_name(TraceFormat f) noexcept {
  const auto i = static_cast<std::size_t>(f);
  return i < kTraceFormatNames.size() ? kTraceFormatNames[i] : "unknown";
}
constexpr std::optional<TraceFormat> trace_format_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTraceFormatNames.size(); ++i) {
    if (kTraceFormatNames[i] == name) return static_cast<TraceFormat>(i);
  }
  return std::nullopt;
}
/// returns: the form whose first line this can be; nothing for any other.
[[nodiscard]] std::optional<TraceFormat> detect_trace_format(std::string_view first_line);
/// errors: io; too_large; unsupported: none of the known ones, or an empty file.
[[nodiscard]] Result<TraceFormat> detect_trace_format_of_file(const std::string& path);

struct TraceOptions {
  TraceFormat format = TraceFormat::automatic;
  std::int64_t conversation_gap_us = 0;  ///< weka: conversation i starts at i times this
  bool share_system_prompts = false;     ///< weka: equal lengths of tools and system are the same blocks
  std::uint64_t block_salt = 0;          ///< weka: gives all blocks but shared ones other ids
};

/// Reads one record of the Mooncake form: {"timestamp": ms, "input_length", "output_length", "hash_ids": [...],
/// "session_id"}. hash_ids and session_id may be absent, unknown members are ignored, the last of equal members wins.
/// errors: invalid_json, not_an_object, missing_field, wrong_type, value_out_of_range; malformed when there are more
/// ids than the prompt has blocks. threads: any.
[[nodiscard]] Result<TraceRecord> parse_mooncake_line(std::string_view line, const TraceLimits& limits = {});

/// Reads a trace record by record, in the file's order. Memory is bounded: a line, a record, and max_chats.
/// qwen: the session is the chat at the root of its parents. ragpulse: where the files of lengths lie beside the trace
/// (1_sys_prompt.jsonl to 5_web_search.jsonl), pieces are as long as they say, else equally long.
/// azure: times count from the first record; one before it has a negative arrival. threads: one at a time.
class TraceReader {
 public:
  /// errors: io when the file cannot be opened.
  [[nodiscard]] static Result<TraceReader> open(const std::string& path, const TraceLimits& limits = {},
                                                const TraceOptions& options = {});
  /// Reads from memory; messages call it `name`. lifetime: `text` until the reader's end.
  [[nodiscard]] static TraceReader from_text(std::string_view text, const TraceLimits& limits = {},
                                             const TraceOptions& options = {}, std::string name = "trace");
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  /// returns: the next record; nothing at the end. Blank lines are skipped.
  /// errors: as parse_mooncake_line; unsupported: the first line is of no known form; too_large for a line beyond the
  /// limit; io for a broken file (a cut gzip stream too). The message is "<file>:<line>: ...", lines from 1; the offset
  /// is where that line starts, in uncompressed bytes. After an error the next call goes on with the next line, except
  /// after io and unsupported.
  [[nodiscard]] Result<std::optional<TraceRecord>> next();
  /// The same into a record of the caller's, whose memory is used again. returns: false at the end; `record` is then, as
  /// after an error, not to be read.
  [[nodiscard]] Result<bool> next(TraceRecord& record);

  [[nodiscard]] std::uint64_t line() const noexcept;  ///< number of the line read last
  [[nodiscard]] TraceFormat format() const noexcept;  ///< automatic until the first line told it

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Reads at most `limit` records (0: all). Where a form has no start of its own (azure, burstgpt), the earliest of them
/// arrives at 0. errors: the first one of TraceReader.
[[nodiscard]] Result<std::vector<TraceRecord>> read_trace(const std::string& path, std::size_t limit = 0,
                                                          const TraceLimits& limits = {},
                                                          const TraceOptions& options = {});
/// read_trace, of the Mooncake form alone.
[[nodiscard]] Result<std::vector<TraceRecord>> read_mooncake_trace(const std::string& path, std::size_t limit = 0,
                                                                   const TraceLimits& limits = {});

/// Spreads records of one timestamp over the time until the next: record i of n at t, next distinct timestamp t2,
/// arrives at t + floor((t2 - t) * i / n); the last group uses the gap before it. Published traces are quantised to
/// about 3 s, and the first request of each step would see a burst of ten. Records are first put in order of arrival
/// (stable).
void spread_arrivals(std::vector<TraceRecord>& records);

/// returns: by how much, in permille, arrivals must be sped up so that `replicas` machines would spend `load_permille`
/// of the time on prefill if nothing were cached: load * replicas * span / sum(a*in + b*in*(in+1)/2), rounded to the
/// nearest; at least 1. The span reaches from the first arrival to the last; 1000 (as recorded) when there is no span
/// or no work.
[[nodiscard]] std::int64_t speed_permille_for_load(std::span<const TraceRecord> records,
                                                   const HardwareProfile& hardware, std::int64_t replicas,
                                                   std::int64_t load_permille);

/// Divides all arrivals by a speed.
void scale_arrivals(std::vector<TraceRecord>& records, std::int64_t speed_permille);

/// What one infinite cache shared by all replicas would serve, in order of arrival: leading whole blocks seen before,
/// never the last token. The upper bound of every routing policy's hit ratio. `block_tokens` 0: each record's own.
struct PrefixBound {
  std::int64_t input_tokens = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t distinct_blocks = 0;  ///< whole blocks
  [[nodiscard]] double ratio() const noexcept {
    return input_tokens == 0 ? 0.0 : static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
  }
};
[[nodiscard]] PrefixBound prefix_bound(std::span<const TraceRecord> records, std::int64_t block_tokens = 0);

}  // namespace warmroute::trace
