// What metrics pages and the poller share.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "router.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::python {

/// (replica, dp_rank or None, model) of RankReplica in warmroute/_metrics.py.
using ReplicaRows = std::vector<std::tuple<std::uint64_t, std::optional<std::uint32_t>, std::string>>;

/// errors: as engine_table_from_json.
std::vector<EngineMetricsTable> tables_of(const std::vector<std::string>& json);

}  // namespace warmroute::python
