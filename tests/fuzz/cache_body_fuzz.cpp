// Whatever the bytes, a cache export's body is refused with a message and a place, or its trees hold what a replica can hold: they are
// believed by a residency within its capacity, rates are those of a learner or refused, and reading what is written of them gives the same again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "route/cache_body.hpp"
#include "warmroute/prefix/residency.hpp"
#include "warmroute/route/router.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void believe(const warmroute::CachedTree& tree) {
  warmroute::CachedPaths paths(tree);
  require(paths.valid());
  static warmroute::PrefixIndex index({.max_replicas = 4, .max_bytes = std::size_t{16} << 20});
  for (const std::size_t capacity : {0u, 7u}) {
    warmroute::Residency model(index, {1, 1}, warmroute::Tier::device, {.capacity_blocks = capacity});
    model.insert(std::vector<warmroute::BlockHash>{warmroute::BlockHash{1}}, warmroute::Nanos{5});
    model.restore(tree, paths, warmroute::Nanos{3}, warmroute::Nanos{-1'000});
    require(capacity == 0 ? model.blocks() <= tree.blocks.size() + 1 : model.blocks() <= capacity);
    warmroute::CachedTree again;
    model.copy(again);
    require(warmroute::CachedPaths(again).valid() && again.blocks.size() == model.blocks());
    model.clear();
  }
}

// What a learner may have learned it goes on from, within its bounds.
void learn(const warmroute::LearnedPool& learned) {
  if (learned.kinds.empty()) return;
  warmroute::LearnedPool kind;
  kind.kinds.push_back(learned.kinds.front());
  const warmroute::Rates declared;
  kind.kinds.front().declared = declared;
  warmroute::detail::RateLearner learner;
  learner.declare(declared);
  if (!learner.begin_with(kind.kinds.front())) return;
  for (std::int64_t i = 1; i < 200; ++i) {
    warmroute::detail::RateSample sample;
    sample.observed_ns = i * 7'777'777;
    sample.part_ns = {declared.floor_ns, i * 1'000'000, i * 3, 0};
    learner.observe(sample, warmroute::detail::RateLearner::kOne);
    const warmroute::Rates now = learner.estimate();
    require(now.floor_ns >= declared.floor_ns / 64 && now.floor_ns <= declared.floor_ns * 64);
    require(now.token_ps >= declared.token_ps / 64 && now.token_ps <= declared.token_ps * 64);
  }
}

std::string written_of(const warmroute::CacheBody& body) {
  std::string out;
  warmroute::append_body_header(out, body.block_size, body.seed_digest, body.replicas.size());
  for (const auto& replica : body.replicas) {
    warmroute::append_replica_cache(out, replica.pool, replica.name, replica.dp_rank, replica.cache);
  }
  warmroute::append_pool_count(out, body.learned.size());
  for (const auto& pool : body.learned) warmroute::append_learned(out, pool.pool, pool.learned);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = warmroute::read_cache_body({reinterpret_cast<const char*>(data), size});
  if (!body) {
    require(!body.error().message.empty() && body.error().offset <= size);
    return 0;
  }
  for (const auto& replica : body->replicas) believe(replica.cache.tree);
  for (const auto& pool : body->learned) learn(pool.learned);
  const std::string written = written_of(*body);
  const auto again = warmroute::read_cache_body(written);
  require(again.ok() && again->replicas.size() == body->replicas.size());
  require(written_of(*again) == written);
  return 0;
}
