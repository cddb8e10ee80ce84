/// What metrics pages and the poller share.
#pragma once

#include "support.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::capi {

/// returns: OK, or why a target cannot be read. lifetime: `out` has views of the caller's strings.
wr_status read_target(const wr_metrics_target* given, RankReplica& out, wr_error* err) noexcept;

}  // namespace warmroute::capi
