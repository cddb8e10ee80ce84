/// Working memory of routing calls: kept, reused, one area per call in progress. Nothing is allocated once warm.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/route/detail/cost_line.hpp"
#include "warmroute/route/detail/inflight_prefixes.hpp"
#include "warmroute/route/detail/pair_line.hpp"

namespace warmroute::detail {

struct Scratch {
  std::vector<BlockHash> blocks;
  PrefixMatch match;
  PrefixMatch predicted;                       // used while anything is foreseen of replicas whose engines report
  PrefixMatch in_store;                        // used while there is a store that all replicas can load from
  std::uint32_t store_blocks = 0;              // of the prompt, leading, in that store
  std::vector<std::uint32_t> filtered;         // indices of candidates, where not all plain ones may be used
  std::span<const std::uint32_t> eligible;     // those, or PoolView::plain
  std::vector<Rates> rates;                    // by kind of hardware: learned, or as declared
  std::vector<std::int64_t> whole_prefill_ns;  // of the whole prompt, by kind of hardware
  std::vector<CostLine> cold;                  // who holds nothing of the prompt, by kind of hardware
  std::vector<DeeperLines<CostLine>> deeper;   // who holds some of it, by kind of hardware
  std::vector<PairLine> pair_cold;             // likewise, where pairs can be formed
  std::vector<DeeperLines<PairLine>> pair_deeper;
  std::array<SharedStep, kMaxCheckpoints> shared{};
};

/// A fixed set of areas; a call takes any free one, or makes its own when more calls are inside than there are areas.
class ScratchPool {
  struct alignas(kCacheLine) Area {
    std::atomic<bool> taken{false};
    Scratch scratch;
  };

 public:
  class Lease {
   public:
    Lease(ScratchPool& pool, std::atomic<std::uint64_t>& extra) {
      const std::uint32_t start = thread_hint();
      for (std::uint32_t i = 0; i < kAreas; ++i) {
        Area& area = pool.areas_[(start + i) % kAreas];
        if (!area.taken.load(std::memory_order_relaxed) && !area.taken.exchange(true, std::memory_order_acquire)) {
          area_ = &area;
          return;
        }
      }
      extra.fetch_add(1, std::memory_order_relaxed);
      own_ = std::make_unique<Scratch>();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (area_ != nullptr) area_->taken.store(false, std::memory_order_release);
    }
    Scratch& operator*() noexcept { return area_ != nullptr ? area_->scratch : *own_; }

   private:
    Area* area_ = nullptr;
    std::unique_ptr<Scratch> own_;
  };

 private:
  static constexpr std::uint32_t kAreas = 64;
  std::unique_ptr<Area[]> areas_ = std::make_unique<Area[]>(kAreas);
};

}  // namespace warmroute::detail
