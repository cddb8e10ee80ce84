/// What a simulation serves: requests with their prompts as block ids, and who follows whom.
/// Open loop: every request has its own arrival. Closed loop: a follower arrives when the one before it has ended, so
/// that a faster fleet serves more in the same time.
///
/// Invariant: block ids are dense (0 .. distinct_blocks - 1), an id stands for its block and all before it, and equal
/// parameters give equal workloads on every platform. Does not: hold text or tokens, or depend on any hardware but
/// through the speed at which the caller plays it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {

inline constexpr std::uint32_t kNoRequest = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kNoConversation = std::numeric_limits<std::uint32_t>::max();

struct WorkloadRequest {
  std::int64_t arrival_us = 0;  ///< of one that follows nobody; a follower's is its predecessor's end + `delay_us`
  std::int64_t delay_us = 0;
  std::int64_t input_tokens = 1;
  std::int64_t output_tokens = 1;
  std::uint64_t first_block = 0;  ///< into Workload::blocks
  std::uint32_t block_count = 0;  ///< whole blocks of the prompt that have an identity
  std::uint32_t conversation = kNoConversation;
  std::uint32_t first_follower = kNoRequest;
  std::uint32_t next_sibling = kNoRequest;  ///< the next follower of the same predecessor
  bool follows = false;
};

struct Workload {
  std::string name;
  std::int64_t block_tokens = kMooncakeBlockTokens;
  std::vector<WorkloadRequest> requests;
  std::vector<std::uint64_t> blocks;
  std::uint64_t distinct_blocks = 0;
  std::uint64_t salt = 0;  ///< of the block hashes that a real router is given

  [[nodiscard]] std::span<const std::uint64_t> blocks_of(const WorkloadRequest& r) const noexcept {
    return {blocks.data() + r.first_block, r.block_count};
  }
  [[nodiscard]] bool closed_loop() const noexcept;
};

/// Records of a trace at their own times, spread inside equal timestamps (spread_arrivals). `block_tokens` 0: what the
/// first record's blocks have. Whom they wait for is passed over.
[[nodiscard]] Workload open_loop(std::vector<TraceRecord> records, std::int64_t block_tokens = 0);

/// By how much, in permille, arrivals must be sped up for a load: see speed_permille_for_load.
[[nodiscard]] std::int64_t speed_permille_for_load(const Workload& workload, const HardwareProfile& hardware,
                                                   std::int64_t replicas, std::int64_t load_permille);
/// Divides the arrivals of all that follow nobody.
void scale_arrivals(Workload& workload, std::int64_t speed_permille);

/// Conversations of coding agents, recorded by the public kv-cache-tester set, as closed loops.
struct AgentTraceOptions {
  double conversations_per_second = 0.1;   ///< starts form a Poisson process
  std::uint64_t seed = 1;                  ///< of the starts
  std::int64_t think_cap_us = 60'000'000;  ///< longer pauses are cut to this
  bool share_system_prompts = false;       ///< conversations of equal tool + system lengths share those blocks
  std::size_t limit = 0;                   ///< take the first n conversations; 0: all
  std::size_t repeats = 1;                 ///< how often the set is played; each time with blocks of its own
};
/// Reads the weka form (TraceReader), plain or gzip, one conversation a line.
/// A sub-agent is a chain of its own that starts when the turn before it ends; its parent does not wait for it.
/// errors: those of TraceReader; value_out_of_range where block sizes differ.
[[nodiscard]] Result<Workload> read_agent_trace(const std::string& path, const AgentTraceOptions& options);

/// Agents behind one system prompt: the hot prefix. Turn 1 adds 256..1,023 tokens, later ones the previous output and
/// 128..2,047; outputs 64..511; think time 0.5..4.5 s; agents start 0.1 s apart (exponential).
struct HotPrefixOptions {
  std::int64_t agents = 50;
  std::int64_t turns = 20;
  std::int64_t system_tokens = 6'144;
  std::int64_t block_tokens = 64;
  std::uint64_t seed = 1;
};
[[nodiscard]] Workload hot_prefix(const HotPrefixOptions& options);

}  // namespace warmroute::trace
