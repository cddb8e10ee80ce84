// KV events in Python: what a source and a subscriber share.
#pragma once

#include <string>

#include "router.hpp"
#include "warmroute/ingest/kv_source.hpp"

namespace warmroute::python {

/// What the keywords of a source say; `isolation_key` is the caller's to keep.
KvSourceOptions kv_options(const PyRouter& router, const std::optional<std::uint32_t>& block_size,
                           std::uint32_t engine_block_size, const std::optional<std::uint64_t>& hash_seed, bool replay,
                           std::uint32_t replay_attempts, std::int64_t replay_timeout_ns, std::size_t max_message_bytes,
                           std::size_t max_held_bytes, std::size_t max_orphan_blocks, std::int64_t orphan_age_ns);
py::dict status_dict(const KvSourceStatus& s, std::uint64_t blocks_stored, std::uint64_t blocks_removed);

}  // namespace warmroute::python
