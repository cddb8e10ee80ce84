/// Asks a model server for its own name of a model, where the client used another: in the body, or where the path has it.
/// Invariant: nothing else of a body or a target changes, to the byte.
#pragma once

#include <string>
#include <string_view>

#include "gateway/target.hpp"

namespace warmroute::gateway {

/// returns: the body with this value of its outermost `model`. The body was read before and is an object; one without the member
/// gets it. cost: a pass over the body.
std::string with_model(std::string_view body, std::string_view model);

/// returns: the request's target with this model in its path, where it has one, below `base`: the path of a base URL, as clients of
/// these APIs take it, stands instead of "/v1".
std::string upstream_target(std::string_view target, const Target& read, std::string_view model, std::string_view base);

}  // namespace warmroute::gateway
