// The words of a snapshot for enumerations, by their numbers: reading and writing share them. Private to lib.
#pragma once

#include <array>
#include <string_view>

namespace warmroute::control {

inline constexpr std::array<std::string_view, 3> kOnExpiredWords{"serve", "deny_new_keys", "deny_all"};
inline constexpr std::array<std::string_view, 3> kDigestWords{"hmac_sha256", "sha256_secret", "sha256_key"};
inline constexpr std::array<std::string_view, 3> kLimitKindWords{"rate", "budget", "concurrency"};
// Money is in USD here, exact to 1e-9.
inline constexpr std::array<std::string_view, 5> kLimitUnitWords{"requests", "input_tokens", "output_tokens",
                                                                 "total_tokens", "usd"};
inline constexpr std::array<std::string_view, 6> kCalendarWords{"minute", "hour", "day", "week", "month", "year"};

}  // namespace warmroute::control
