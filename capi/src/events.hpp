/// What a source of KV events and the subscriber share.
#pragma once

#include "support.hpp"
#include "warmroute/ingest/kv_source.hpp"

namespace warmroute::capi {

/// All but the isolation key, the notice and what they need to outlive.
KvSourceOptions source_options_of(const wr_kv_source_options& o, const Policy& policy) noexcept;
wr_kv_source_status status_of(const KvSourceStatus& s, std::uint64_t stored, std::uint64_t removed) noexcept;

}  // namespace warmroute::capi
