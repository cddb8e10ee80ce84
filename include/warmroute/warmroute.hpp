/// Everything of warmroute in one include. `warmroute::core` suffices for prefix, ring, replica and route;
/// what reads or writes a format (ingest, trace, JSON policy) needs `warmroute::warmroute` linked.
#pragma once

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/prefix/residency.hpp"
#include "warmroute/replica/load.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/replica/table.hpp"
#include "warmroute/result.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/ring/movement.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/trace/replica_model.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/trace.hpp"
#include "warmroute/types.hpp"
