/// A router's statistics in Prometheus' text exposition format, names `warmroute_*`. In lib.
#pragma once

#include <string>

#include "warmroute/observe/statistics.hpp"

namespace warmroute {

/// returns: one page, families with HELP and TYPE, label values escaped. Appends to `out`, so that an embedder can add its own families.
void append_prometheus(const RouterStatistics& statistics, std::string& out);

}  // namespace warmroute
