/// wr_policy to Policy and back.
#pragma once

#include "support.hpp"
#include "warmroute/route/policy.hpp"

namespace warmroute::capi {

/// Values out of an enumeration's range stay out of it, so that validate() names them.
Policy policy_of(const wr_policy& p) noexcept;
wr_policy policy_of(const Policy& p) noexcept;
/// What a shorter wr_policy of an older caller lacks.
const wr_policy& policy_defaults() noexcept;

}  // namespace warmroute::capi
