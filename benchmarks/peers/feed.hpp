// Chains, and how the index is told of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../prefix_workloads.hpp"
#include "measure.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute::peers {
namespace {

using bench::kChainBlocks;
using bench::local;
using bench::mix;
using bench::Path;

/// How the index is told: as engines say it, by their names of blocks (what the peers take), or by the path from block 0 (what
/// this library's own models of caches say).
bool by_name = true;

/// A chain of blocks, and what engines call them: the hash of the chain up to there.
struct Chain {
  Path blocks;
  std::vector<EngineHash> ids;

  void push_back(BlockHash h) {
    ids.push_back(EngineHash{
        blocks.empty() ? to_u64(h) : warmroute::detail::chain_step(static_cast<std::uint64_t>(ids.back()), to_u64(h))});
    blocks.push_back(h);
  }
  void cut(std::size_t length) {
    blocks.resize(length);
    ids.resize(length);
  }
  [[nodiscard]] std::size_t size() const { return blocks.size(); }
};
Chain chain(std::uint64_t family, std::size_t length) {
  Chain made;
  for (std::size_t p = 0; p < length; ++p) made.push_back(local(family, p));
  return made;
}
std::uint64_t digest_of(std::span<const Chain> chains) {
  std::uint64_t sum = 0;
  for (const auto& chain : chains) {
    for (const auto h : chain.blocks) sum = mix(sum ^ to_u64(h));
  }
  return sum;
}

ReplicaId replica(std::size_t slot) { return {static_cast<std::uint32_t>(slot), 1}; }

/// Blocks [first, end) of a chain, stored or removed by a replica. By name the event owns what it says, as a decoder leaves it.
struct Event {
  bool stores = true;
  std::size_t w = 0;
  const Chain* chain = nullptr;
  std::size_t first = 0, end = 0;
  std::vector<EngineHash> ids;  // those to remove: leaf to root
  std::vector<BlockHash> blocks;
};
Event event(bool stores, std::size_t w, const Chain& chain, std::size_t first, std::size_t end) {
  Event made{stores, w, &chain, first, end, {}, {}};
  if (!by_name) return made;
  const auto ids = std::span(chain.ids).subspan(first, end - first);
  if (stores) {
    made.ids.assign(ids.begin(), ids.end());
    made.blocks.assign(chain.blocks.begin() + static_cast<std::ptrdiff_t>(first),
                       chain.blocks.begin() + static_cast<std::ptrdiff_t>(end));
  } else {
    made.ids.assign(ids.rbegin(), ids.rend());
  }
  return made;
}
void apply(PrefixIndex& index, const Event& e) {
  const auto path = std::span(e.chain->blocks).first(e.end);
  if (!e.stores) {
    by_name ? index.remove_event(replica(e.w), Tier::device, e.ids)
            : index.remove(replica(e.w), Tier::device, path, e.first);
    return;
  }
  const EngineHash* parent = e.first == 0 ? nullptr : &e.chain->ids[e.first - 1];
  const auto done = by_name ? index.store_event(replica(e.w), Tier::device, parent, e.ids, e.blocks)
                            : index.store(replica(e.w), Tier::device, path, e.first);
  if (!done) fail("a store was refused");
}
void store(PrefixIndex& index, std::size_t w, const Chain& chain, std::size_t first, std::size_t end) {
  apply(index, event(true, w, chain, first, end));
}

/// Events are made just before they are applied, as if just decoded. Adds up the CPU time of applying alone.
class Feed {
 public:
  explicit Feed(PrefixIndex& index) : index_(&index) {}
  void add(Event e) {
    blocks_ += e.end - e.first;
    events_.push_back(std::move(e));
    if (blocks_ >= kBatchBlocks) flush();
  }
  /// units: nanoseconds.
  double finish() {
    flush();
    return ns_;
  }

 private:
  static constexpr std::size_t kBatchBlocks = 8'192;
  void flush() {
    const double begin = thread_cpu_ns();
    for (const Event& e : events_) apply(*index_, e);
    ns_ += thread_cpu_ns() - begin;
    events_.clear();
    blocks_ = 0;
  }
  PrefixIndex* index_;
  std::vector<Event> events_;
  std::size_t blocks_ = 0;
  double ns_ = 0;
};

}  // namespace
}  // namespace warmroute::peers
