/// What one pool remembers between requests: its index, the residency model of each replica, what is in flight and what it learned.
/// Invariant: residencies are touched only under `placing`; everything else here is lock-free or has its own lock.
/// A pool lives as long as its router: the number of pools is the number of models an operator configured.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/prefix/residency.hpp"
#include "warmroute/prefix/slot_residency.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/detail/forks.hpp"
#include "warmroute/route/detail/inflight_prefixes.hpp"
#include "warmroute/route/detail/placement_queue.hpp"
#include "warmroute/route/detail/prediction.hpp"
#include "warmroute/route/detail/replica_pace.hpp"
#include "warmroute/route/detail/shared_store.hpp"
#include "warmroute/route/detail/ticket_table.hpp"
#include "warmroute/route/disaggregate.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

/// A running mean with a prior, in thousandths; old values fade once `kWindow` have come. threads: any, lock-free.
class RunningMean {
 public:
  RunningMean(std::int64_t prior_milli, std::int64_t prior_weight)
      : milli_(prior_milli), count_(prior_weight), prior_weight_(prior_weight) {}
  void add(std::int64_t value_milli) noexcept {
    const std::int64_t n = std::min<std::int64_t>(count_.fetch_add(1, std::memory_order_relaxed) + 1, kWindow);
    std::int64_t mean = milli_.load(std::memory_order_relaxed);
    while (!milli_.compare_exchange_weak(mean, mean + (value_milli - mean) / n, std::memory_order_relaxed)) {}
  }
  [[nodiscard]] std::int64_t milli() const noexcept { return milli_.load(std::memory_order_relaxed); }
  /// returns: how many values the mean stands for, the prior's weight included.
  [[nodiscard]] std::int64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Begins with what an earlier process learned, unless this one has learned something by itself.
  void begin_with(std::int64_t milli, std::int64_t count) noexcept {
    std::int64_t nothing_yet = prior_weight_;
    if (count <= prior_weight_ || !count_.compare_exchange_strong(nothing_yet, std::min(count, kWindow))) return;
    milli_.store(milli, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kWindow = 1'024;
  std::atomic<std::int64_t> milli_;
  std::atomic<std::int64_t> count_;
  std::int64_t prior_weight_;
};

/// The mean of what was added of late: the last 32 or so. threads: any, lock-free.
class RecentWait {
 public:
  void add(std::int64_t ns) noexcept {
    std::int64_t mean = ns_.load(std::memory_order_relaxed);
    while (!ns_.compare_exchange_weak(mean, mean + (ns - mean) / 32, std::memory_order_relaxed)) {}
  }
  [[nodiscard]] std::int64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> ns_{0};
};

/// Identity of how blocks are hashed: blocks of another rule never match.
inline std::uint64_t hash_rule_of(const Policy& policy) noexcept {
  return mix(policy.hash_seed ^ mix(policy.block_size));
}

/// What look-ups see of a replica that keeps slots: its model after the last change. Readers hold an epoch guard; writers hold `placing`.
class SlotsSeen {
 public:
  struct Model {
    ReplicaId id;
    SlotCache<BlockHash> cache;
  };
  SlotsSeen() = default;
  SlotsSeen(const SlotsSeen&) = delete;
  SlotsSeen& operator=(const SlotsSeen&) = delete;
  ~SlotsSeen() { delete model_.load(std::memory_order_relaxed); }

  /// lifetime: as long as the guard. returns: nullptr where nothing is believed.
  [[nodiscard]] const Model* read(const EpochDomain::Guard&) const noexcept {
    return model_.load(std::memory_order_seq_cst);
  }
  void publish(EpochDomain& domain, const SlotResidency* now) {
    const Model* next = now == nullptr ? nullptr : new Model{now->replica(), now->copy()};
    const Model* old = model_.exchange(next, std::memory_order_seq_cst);
    if (old == nullptr) return;
    domain.retire(old);
    domain.collect(4);
  }

 private:
  std::atomic<const Model*> model_{nullptr};
};

/// The model of one replica's cache, of one kind or the other, and how far the declared capacity of a paged one is trusted.
struct ModelledCache {
  ReplicaId id;
  std::unique_ptr<Residency> residency;
  std::unique_ptr<SlotResidency> slots;
  SlotsSeen slots_seen;
  std::int64_t capacity_tokens = 0;         // declared by engine, spec or policy
  std::size_t capacity_blocks = 0;          // what that comes to, as far as it is trusted; follows in steps of 3 %
  std::int64_t tokens_per_block_milli = 0;  // mean of what is placed there; 0 = nothing yet
  std::uint64_t hash_rule = 0;              // of the policy it was made under
  std::int64_t trust_milli = 1'000;         // effective capacity = declared * trust, moved by feedback in small steps
  std::atomic<std::uint32_t> reported_generation{
      0};  // of the tenant whose engine sends events; set under `placing`, read anywhere

  [[nodiscard]] bool reported() const noexcept {
    return reported_generation.load(std::memory_order_relaxed) == id.generation && id.valid();
  }
};

struct PoolState {
  PoolState(EpochDomain& domain, std::string pool_name, std::uint32_t max_replicas, std::size_t index_bytes,
            std::size_t hot_entries, std::size_t queue_size)
      : name(std::move(pool_name)),
        index(domain, PrefixIndexOptions{.max_replicas = max_replicas, .max_bytes = index_bytes}),
        predicted(domain, max_replicas, index_bytes / 8),
        shared(domain, index_bytes / 4),
        hot(hot_entries),
        queue(queue_size),
        caches(max_replicas),
        paces(max_replicas),
        shares(max_replicas) {}

  std::string name;
  PrefixIndex index;
  PredictedCaches predicted;  // of replicas whose engines report
  SharedStore shared;         // that all of them can load from
  InflightPrefixes hot;
  ForkTable forks;  // used with several routers
  RunningMean output_tokens{256'000, 16};
  RunningMean input_tokens{0, 0};  // of the requests routed, thousandths
  RunningMean prefill_ns{0, 0};    // of their uncached tokens, ns
  RecentWait waits;                // expected, of the requests routed
  RunningMean bytes_per_token_milli{4'000'000,
                                    16};  // thousandths of thousandths: 4 bytes per token until told otherwise
  alignas(kCacheLine) std::atomic<std::uint64_t> turn{0};  // of round robin

  std::mutex placing;
  PlacementQueue queue;
  std::vector<ModelledCache> caches;    // by slot
  std::vector<BlockHash> removed_path;  // working memory of events, under `placing`

  std::atomic<bool> apart{false};  // some replica is, or was until the last `advance`, slower or quicker than its kind
  std::vector<ReplicaPace> paces;  // by slot
  std::vector<PrefillShare> shares;  // by slot; kept where pairs can be formed
  std::vector<std::unique_ptr<RateLearner>>
      learners;  // of kinds of hardware, under the router's `control_`; never freed

  [[nodiscard]] std::vector<LearnedRates> learned_rates() const {
    std::vector<LearnedRates> out;
    for (const auto& l : learners) {
      out.push_back({l->declared(), l->rates(), l->trusted(), static_cast<std::uint64_t>(l->samples())});
    }
    return out;
  }
  /// The learner of each of these rates. One that stands for a kind that left is kept for its return, until there are as many as replicas
  /// could need. alloc: for a new kind.
  [[nodiscard]] std::vector<RateLearner*> learners_of(const std::vector<Rates>& kinds) {
    std::vector<RateLearner*> out(kinds.size());
    const auto declared_as = [](const Rates& rates) {
      return [&rates](const auto& l) { return l->declared() == rates; };
    };
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      auto found = std::find_if(learners.begin(), learners.end(), declared_as(kinds[k]));
      if (found == learners.end() && learners.size() >= caches.size()) {
        found = std::find_if(learners.begin(), learners.end(), [&](const auto& l) {
          return std::find(kinds.begin(), kinds.end(), l->declared()) == kinds.end();
        });
        (*found)->declare(kinds[k]);
      } else if (found == learners.end()) {
        found = learners.insert(found, std::make_unique<RateLearner>());
        (*found)->declare(kinds[k]);
      }
      out[k] = found->get();
    }
    return out;
  }

  /// returns: learned canonical bytes per token, in thousandths, within 0.25..64.
  [[nodiscard]] std::int64_t bytes_per_token() const noexcept {
    return std::clamp<std::int64_t>(bytes_per_token_milli.milli() / 1'000, 250, 64'000);
  }
};

}  // namespace warmroute::detail
