/// The service model of one replica: continuous batching, chunked prefill, a leaf-first LRU block cache, KV admission
/// and preemption, in integer time. One engine step is one event; whoever owns the clock (a test, a simulator, a
/// real-time server) drives it.
///
/// Invariant: private + cached blocks never exceed the capacity, and a cached block's parent is cached too.
/// The same calls in the same order give the same events. Does not: read a clock, know tokens (an id stands for a whole
/// prefix), reuse output blocks, model host tiers or noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace warmroute::trace {

/// What a step costs on one kind of machine and model, as data:
/// step = max(floor, per_token * T) + per_pair * pairs + per_context * ctx + overhead, where T counts all tokens of the
/// step, pairs the (new token, attended token) pairs of prefill chunks, ctx the tokens that decodes attend to.
/// units: picoseconds, so that every published constant is an integer and a step is rounded once.
struct HardwareProfile {
  std::string_view name;
  std::int64_t floor_ps = 0;
  std::int64_t per_token_ps = 0;
  std::int64_t per_pair_ps = 0;
  std::int64_t per_context_ps = 0;
  std::int64_t overhead_ps = 0;
  std::int64_t kv_tokens = 0;
  std::int64_t cents_per_hour = 0;  ///< price of one replica; 0: not known
  std::int64_t group_ranks = 1;     ///< replicas that step together, at the pace of the slowest: ranks of one engine
  std::int64_t kv_bytes_per_token = 0;  ///< of one replica; what a transfer moves

  /// returns: the work of computing `new_tokens` behind `cached_tokens` in one go, without floor and overhead.
  /// Exact causal attention: the value does not depend on how a prompt is cut into chunks. units: picoseconds.
  [[nodiscard]] constexpr std::int64_t prefill_ps(std::int64_t new_tokens, std::int64_t cached_tokens) const noexcept {
    return per_token_ps * new_tokens + per_pair_ps * pairs(new_tokens, cached_tokens);
  }
  [[nodiscard]] static constexpr std::int64_t pairs(std::int64_t new_tokens, std::int64_t cached_tokens) noexcept {
    return new_tokens * cached_tokens + new_tokens * (new_tokens + 1) / 2;
  }
};

/// The built-in profiles: 8b and 70b on A100, H100 and H200, and one rank of a mixture-of-experts engine
/// (moe-dp8-h200). lifetime: static.
[[nodiscard]] std::span<const HardwareProfile> hardware_profiles() noexcept;
/// returns: the built-in profile of that name, or null.
[[nodiscard]] const HardwareProfile* find_hardware_profile(std::string_view name) noexcept;

/// Blocks that a replica can have from elsewhere, at once and for nothing: what a bound from above is made of.
class RemoteBlocks {
 public:
  virtual ~RemoteBlocks() = default;
  [[nodiscard]] virtual bool holds(std::uint64_t block) const = 0;
};

struct ReplicaModelConfig {
  HardwareProfile hardware;
  std::int64_t block_tokens = 512;
  std::int64_t capacity_tokens = 0;  ///< 0: what the profile says
  std::int64_t step_token_budget = 8192;
  std::int64_t max_running = 256;
  std::int64_t watermark_permille = 10;  ///< of the capacity, kept free at admission unless nothing runs
  std::int64_t speed_permille = 1000;    ///< 500: every step takes twice as long
  const RemoteBlocks* remote = nullptr;  ///< null: its own cache alone. lifetime: the model's
};

/// Receives what happens, in order. Every function may be left out. The model must not be called from inside.
class ReplicaSink {
 public:
  virtual ~ReplicaSink() = default;
  /// The request runs; its first `cached_tokens` need no prefill. `attempt` is 0, or counts re-admissions after
  /// preemption.
  virtual void admitted(std::uint64_t /*id*/, std::int64_t /*at_us*/, std::int64_t /*cached_tokens*/,
                        std::int64_t /*attempt*/) {}
  /// Output token number `index`, from 1; 1 is the first token.
  virtual void token(std::uint64_t /*id*/, std::int64_t /*at_us*/, std::int64_t /*index*/) {}
  virtual void finished(std::uint64_t /*id*/, std::int64_t /*at_us*/) {}
  /// Back to the head of the queue; input and generated tokens are computed again.
  virtual void preempted(std::uint64_t /*id*/, std::int64_t /*at_us*/) {}
  /// `parent` is the block before it, 0 when `depth` is 0.
  virtual void committed(std::uint64_t /*block*/, std::uint64_t /*parent*/, std::int64_t /*depth*/,
                         std::int64_t /*at_us*/) {}
  virtual void evicted(std::uint64_t /*block*/, std::int64_t /*at_us*/) {}
};

/// threads: one at a time (the owner's). alloc: bounded by capacity and by the requests inside.
class ReplicaModel {
 public:
  explicit ReplicaModel(const ReplicaModelConfig& config);
  ReplicaModel(ReplicaModel&&) noexcept;
  ReplicaModel& operator=(ReplicaModel&&) noexcept;
  ~ReplicaModel();

  /// Puts a request at the end of the queue.
  /// shape: `blocks[i]` names the prompt's block i together with everything before it; what lies beyond the whole
  /// blocks of `input_tokens` is ignored. Both token counts are taken as at least 1. `now_us` does not go backwards.
  /// The KV of the first `received_tokens` (at most all but the last) comes with it, computed elsewhere: it needs room
  /// and no computing, and is in the cache from its first step on. A preempted one computes them again.
  /// returns: false when the request can never fit, or the id is already inside; then nothing changed (counted in
  /// `rejected`).
  [[nodiscard]] bool submit(std::uint64_t id, std::span<const std::uint64_t> blocks, std::int64_t input_tokens,
                            std::int64_t output_tokens, std::int64_t now_us, std::int64_t received_tokens = 0);

  /// Takes a request out, queued or running; its blocks are free from now on, the running step keeps its length.
  /// returns: whether it was inside.
  bool cancel(std::uint64_t id);

  /// returns: the end of the running step; nothing when no step runs.
  [[nodiscard]] std::optional<std::int64_t> next_event_us() const noexcept;

  /// Does everything that lies before `now_us`, and the end of a step that ends exactly then.
  /// Order within one instant: advance(t), then submit at t, then start(t); a request that arrives as a step ends sees
  /// that step's blocks and can join the step that starts then.
  void advance(std::int64_t now_us, ReplicaSink& sink);
  /// Starts a step at `now_us` if none runs and there is work. Call after advance(now_us) and the submissions of that
  /// instant.
  void start(std::int64_t now_us, ReplicaSink& sink);

  /// Puts off the end of the running step: the ranks of one engine end a step together. Nothing happens when no step
  /// runs or it ends later anyway.
  void stretch_step(std::int64_t end_us) noexcept;
  /// From the next step on.
  void set_speed(std::int64_t speed_permille) noexcept;

  /// The process dies: the running step, all requests and the cache are gone. returns: the lost ids, running ones
  /// first.
  std::vector<std::uint64_t> crash();

  /// returns: how many leading blocks are cached, of the whole blocks that a prompt of `input_tokens` may match
  /// (never its last token). cost: one look-up per matched block.
  [[nodiscard]] std::int64_t match_blocks(std::span<const std::uint64_t> blocks, std::int64_t input_tokens) const;

  [[nodiscard]] std::int64_t block_tokens() const noexcept;
  [[nodiscard]] std::int64_t capacity_blocks() const noexcept;
  [[nodiscard]] std::int64_t cached_blocks() const noexcept;      ///< referenced and idle
  [[nodiscard]] std::int64_t referenced_blocks() const noexcept;  ///< cached and used by a running request
  [[nodiscard]] std::int64_t private_blocks() const noexcept;     ///< partial, output, or not committed yet
  /// returns: (private + referenced) / capacity, 0..1.
  [[nodiscard]] double kv_usage() const noexcept;
  [[nodiscard]] std::int64_t waiting() const noexcept;
  [[nodiscard]] std::int64_t running() const noexcept;
  /// returns: prompt tokens still to be computed; a queued request counts whole, since it is matched at admission.
  [[nodiscard]] std::int64_t pending_prefill_tokens() const noexcept;
  /// returns: the same less what is cached now of the queued ones' prompts. cost: one look-up per matched block of these.
  [[nodiscard]] std::int64_t uncached_prefill_tokens() const;
  /// returns: the time that the pending tokens take, attention included, without floor and overhead. units: picoseconds.
  [[nodiscard]] std::int64_t pending_prefill_ps() const noexcept;
  /// returns: input and generated tokens of the requests inside.
  [[nodiscard]] std::int64_t tokens_in_flight() const noexcept;
  [[nodiscard]] std::int64_t busy_us() const noexcept;  ///< sum of the finished steps
  [[nodiscard]] std::int64_t prefill_work_ps()
      const noexcept;  ///< per_token and per_pair work of all chunks of finished steps
  [[nodiscard]] std::int64_t steps() const noexcept;
  [[nodiscard]] std::int64_t rejected() const noexcept;
  [[nodiscard]] std::int64_t preemptions() const noexcept;
  [[nodiscard]] std::int64_t evictions() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warmroute::trace
