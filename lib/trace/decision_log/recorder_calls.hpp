/// A recorder behind a Router (route/router_calls.hpp).
#pragma once

#include <memory>

#include "warmroute/route/router_calls.hpp"
#include "warmroute/trace/decision_recorder.hpp"

namespace warmroute::trace::decisions {

std::unique_ptr<RouterCalls> calls_of(DecisionRecorder recorder);

}  // namespace warmroute::trace::decisions
