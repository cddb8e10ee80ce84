/// Request traces: one internal record, a streaming reader of the Mooncake form (JSON lines, plain or gzip), and the
/// arithmetic of a replay: arrivals spread inside quantised timestamps, the speed for a wanted load, the best possible
/// hit ratio.
///
/// Invariant: everything is integer arithmetic on the trace's own numbers, so that two tools replay the same requests
/// at the same instants. Does not: hold prompt text, send anything, read a clock.
#pragma once

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

struct TraceRecord {
  std::int64_t arrival_us = 0;  ///< since the start of the trace
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;     ///< 0: the trace has no answer for it
  std::uint64_t session = 0;          ///< hash of the session id; 0: none
  std::vector<std::uint64_t> blocks;  ///< an id stands for its block and all before it; the last block may be partial
};

struct TraceLimits {
  std::size_t max_line_bytes = std::size_t{16} << 20;
  std::int64_t max_tokens = 100'000'000;  ///< per count; larger is refused as a broken record
};

/// Reads one record of the Mooncake form: {"timestamp": ms, "input_length", "output_length", "hash_ids": [...],
/// "session_id"}. hash_ids and session_id may be absent, unknown members are ignored, the last of equal members wins.
/// errors: invalid_json, not_an_object, missing_field, wrong_type, value_out_of_range; malformed when there are more
/// ids than the prompt has blocks. threads: any.
[[nodiscard]] Result<TraceRecord> parse_mooncake_line(std::string_view line, const TraceLimits& limits = {});

/// Reads a trace file record by record. threads: one at a time.
class TraceReader {
 public:
  /// errors: io when the file cannot be opened.
  [[nodiscard]] static Result<TraceReader> open(const std::string& path, const TraceLimits& limits = {});
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  /// returns: the next record; nothing at the end. Blank lines are skipped.
  /// errors: as parse_mooncake_line, too_large for a line beyond the limit, io for a broken file (a cut gzip stream
  /// too). The message names the line, from 1; the offset is where that line starts, in uncompressed bytes. After an
  /// error the next call goes on with the next line, except after io.
  [[nodiscard]] Result<std::optional<TraceRecord>> next();

  [[nodiscard]] std::uint64_t line() const noexcept;  ///< number of the line read last

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Reads at most `limit` records (0: all). errors: the first one of TraceReader.
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
/// never the last token. The upper bound of every routing policy's hit ratio.
struct PrefixBound {
  std::int64_t input_tokens = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t distinct_blocks = 0;  ///< whole blocks
  [[nodiscard]] double ratio() const noexcept {
    return input_tokens == 0 ? 0.0 : static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
  }
};
[[nodiscard]] PrefixBound prefix_bound(std::span<const TraceRecord> records,
                                       std::int64_t block_tokens = kMooncakeBlockTokens);

}  // namespace warmroute::trace
