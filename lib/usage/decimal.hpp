// Decimal numbers in text to scaled integers, exactly: counts and money never pass through a double.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warmroute::usage {

/// returns: value x 10^scale, rounded to the nearest (ties away from zero); nullopt: not a JSON number, or the result
/// needs more than 63 bits.
std::optional<std::int64_t> parse_scaled(std::string_view number, int scale) noexcept;

/// returns: the number if it is a whole one and not negative, whatever its spelling (12, 12.0, 1.2e1); nullopt: else.
std::optional<std::int64_t> parse_count(std::string_view number) noexcept;

}  // namespace warmroute::usage
