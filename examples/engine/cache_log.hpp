/// What the simulated engine's cache does, as KV events in vLLM's wire forms: a batch per scheduler step.
/// Ids are the engine's own: its seed is mixed in, so that two engines call the same block differently, as real ones may.
///
/// Invariant: the events of all batches, applied in order, leave what the cache holds. Consecutive blocks of a prompt that are stored
/// together are one event; a removed block is an event of its own, as with vLLM.
/// Does not: send anything (publisher.hpp does), or know sequence numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::examples {

/// array: vLLM up to 0.23 and SGLang up to 0.5.16; map: later ones.
enum class EventForm : std::uint8_t { array = 0, map = 1 };

/// The prompt that a block is of, as far as its events tell.
struct PromptFacts {
  std::span<const std::uint32_t> token_ids;  ///< of the block alone
  std::string_view adapter, cache_salt;      ///< empty = none
};

class CacheLog {
 public:
  using Sink = std::function<void(std::string)>;  ///< takes one batch, MessagePack

  CacheLog(EventForm form, std::int64_t block_tokens, std::uint64_t seed, Sink sink);

  /// shape: as ReplicaSink::committed; `parent` counts unless `depth` is 0.
  void stored(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at_us,
              const PromptFacts& prompt);
  void removed(std::uint64_t block, std::int64_t at_us);
  void cleared(std::int64_t at_us);
  /// The engine is a new one: what was not handed out is lost, and blocks get other names.
  void restart(std::uint64_t seed);
  /// Hands out what there is: the step is over.
  void flush();

 private:
  /// Blocks that are stored one behind the other.
  struct Run {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint32_t> token_ids;
    std::uint64_t parent = 0;
    bool at_root = false;
    std::string adapter, cache_salt;
  };

  [[nodiscard]] std::uint64_t id_of(std::uint64_t block) const noexcept;
  void begin(std::int64_t at_us);
  void end_run();

  EventForm form_;
  std::int64_t block_tokens_;
  std::uint64_t seed_;
  Sink sink_;
  std::int64_t at_us_ = 0;
  Run run_;
  std::string events_;  // of the batch, MessagePack
  std::uint32_t count_ = 0;
};

}  // namespace warmroute::examples
