// The plain body of a cache export, before encryption: written and read without knowing of keys.
// version, block size, seed digest, count of replicas; then per replica its identity, what was learned, its runs, its blocks; from version 2
// on then the count of pools, and per pool what was learned of its hardware.
// Numbers are LEB128 varints, hashes 8 bytes little-endian (they are random: nothing would shorten them). Zeros pad the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/route/learned.hpp"
#include "warmroute/route/replica_cache.hpp"

namespace warmroute {

struct NamedReplicaCache {
  std::string pool;
  std::string name;
  std::uint32_t dp_rank = 0;
  ReplicaCache cache;
};

struct NamedLearned {
  std::string pool;
  LearnedPool learned;
};

struct CacheBody {
  std::uint32_t block_size = 0;
  std::uint32_t seed_digest = 0;
  std::vector<NamedReplicaCache> replicas;  // each named once; their taken_at is 0, their last uses are minus the ages
  std::vector<NamedLearned> learned;        // each pool once
};

void append_body_header(std::string& out, std::uint32_t block_size, std::uint32_t seed_digest, std::uint64_t replicas);
void append_replica_cache(std::string& out, std::string_view pool, std::string_view name, std::uint32_t dp_rank,
                          const ReplicaCache& cache);
// Behind the last replica; then each of so many pools.
void append_pool_count(std::string& out, std::uint64_t pools);
void append_learned(std::string& out, std::string_view pool, const LearnedPool& learned);
// Zeros up to the next of few lengths (at most 12 % more), so that the length says little of the count.
void pad_body(std::string& out, std::size_t from);

// errors: malformed, unsupported (version), too_large (counts and depths), each with the offset in `body`.
// alloc: bounded by a small multiple of body.size(), whatever it says.
Result<CacheBody> read_cache_body(std::string_view body);

}  // namespace warmroute
