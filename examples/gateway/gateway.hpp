/// The gateway as one object: a router, a fleet, threads that serve, and an orderly end. main.cpp gives it a command line;
/// the tests run it in their own process.
/// lifetime: start() binds and begins to serve; stop() or request_stop() and wait() end it; the destructor does the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/config.hpp"
#include "gateway/counters.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

/// How a shutdown went.
struct Farewell {
  std::int64_t open_at_stop = 0;  ///< requests in flight when it began
  std::int64_t cut = 0;           ///< of those, not done by the deadline
};

class Gateway {
 public:
  /// errors: invalid_argument (policy, replicas), io (an address that cannot be listened on).
  static Result<std::unique_ptr<Gateway>> start(Config config);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::uint16_t admin_port() const noexcept;
  [[nodiscard]] const Counters& counters() const noexcept;
  [[nodiscard]] Router& router() noexcept;

  /// Takes no more connections, finishes what is in flight up to the deadline, then ends. threads: any, once. Blocks until then.
  Farewell stop();

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute::gateway
