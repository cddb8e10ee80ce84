/// Where warmroute says what an operator should know: membership, policy swaps, expired leases, clamped clocks.
/// Never prompt text, token ids or hashes. Nothing is logged on hot calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmroute {

enum class LogLevel : std::uint8_t { debug = 0, info = 1, warning = 2, error = 3 };
constexpr std::string_view log_level_name(LogLevel level) noexcept {
  constexpr std::string_view names[]{"debug", "info", "warning", "error"};
  return names[static_cast<std::size_t>(level) & 3];
}

/// threads: `write` may be called from any thread that calls into the router, possibly under one of its writer locks: it must not
/// call back into the router. lifetime: `user` must outlive the router; `message` lives until the call returns.
struct LogSink {
  void* user = nullptr;
  void (*write)(void* user, LogLevel level, std::string_view message) = nullptr;

  void operator()(LogLevel level, std::string_view message) const {
    if (write != nullptr) write(user, level, message);
  }
};

}  // namespace warmroute
