/// The router behind its C handle.
#pragma once

#include "support.hpp"
#include "warmroute/route/router.hpp"

struct wr_router {
  wr_router(warmroute::RouterOptions options, wr_log_fn log_fn, void* user)
      : log(log_fn), log_user(user), router(with_sink(options)) {}
  wr_router(const wr_router&) = delete;
  wr_router& operator=(const wr_router&) = delete;

  wr_log_fn log;
  void* log_user;
  warmroute::Router router;  // last: its end may still log

 private:
  warmroute::RouterOptions with_sink(warmroute::RouterOptions options) {
    if (log == nullptr) return options;
    options.log = {this, [](void* self, warmroute::LogLevel level, std::string_view message) {
                     const auto* handle = static_cast<const wr_router*>(self);
                     handle->log(handle->log_user, static_cast<std::uint32_t>(level), {message.data(), message.size()});
                   }};
    return options;
  }
};
