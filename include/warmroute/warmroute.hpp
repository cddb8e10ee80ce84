/// Everything of warmroute in one include. `warmroute::core` suffices for prefix, ring, replica and route;
/// what reads or writes a format (ingest, trace, JSON policy) needs `warmroute::warmroute` linked.
#pragma once

#include "warmroute/replica/load.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/replica/table.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/types.hpp"
