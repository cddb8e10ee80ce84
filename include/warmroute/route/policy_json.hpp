/// Policy from and to JSON: one flat object, members as in policy.hpp, times in milliseconds (`lease_ms`), enums by name.
/// Reading is strict: unknown members, wrong types and values out of range are refused, all faults in one message. In lib.
#pragma once

#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/route/policy.hpp"

namespace warmroute {

/// Members that are absent keep the value they have in `base`.
/// errors: invalid_json (with offset), not_an_object, too_large (64 KiB), invalid_argument (every fault named).
Result<Policy> policy_from_json(std::string_view json, const Policy& base = {});
/// returns: every member; policy_from_json gives the same policy back.
std::string policy_to_json(const Policy& policy);

}  // namespace warmroute
