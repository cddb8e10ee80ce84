// Whatever the bytes, a cache export's body is refused with a message and a place, or its trees hold what a replica can hold: they are
// believed by a residency within its capacity, and reading what is written of them gives the same again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "route/cache_body.hpp"
#include "warmroute/prefix/residency.hpp"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = warmroute::read_cache_body({reinterpret_cast<const char*>(data), size});
  if (!body) {
    require(!body.error().message.empty() && body.error().offset <= size);
    return 0;
  }
  std::string written;
  warmroute::append_body_header(written, body->block_size, body->seed_digest, body->replicas.size());
  for (const auto& replica : body->replicas) {
    believe(replica.cache.tree);
    warmroute::append_replica_cache(written, replica.pool, replica.name, replica.dp_rank, replica.cache);
  }
  const auto again = warmroute::read_cache_body(written);
  require(again.ok() && again->replicas.size() == body->replicas.size());
  std::string twice;
  warmroute::append_body_header(twice, again->block_size, again->seed_digest, again->replicas.size());
  for (const auto& replica : again->replicas) {
    warmroute::append_replica_cache(twice, replica.pool, replica.name, replica.dp_rank, replica.cache);
  }
  require(twice == written);
  return 0;
}
