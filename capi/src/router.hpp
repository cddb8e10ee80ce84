/// The router behind its C handle.
#pragma once

#include <optional>
#include <string>

#include "support.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/trace/decision_recorder.hpp"

struct wr_router {
  wr_router(warmroute::RouterOptions options, wr_log_fn log_fn, void* user)
      : log(log_fn), log_user(user), router(with_sink(options)) {}
  /// One that records, if the recorder could be opened: whoever makes it must look.
  wr_router(warmroute::RouterOptions options, wr_log_fn log_fn, void* user, const std::string& path,
            const warmroute::trace::DecisionLogOptions& recording)
      : log(log_fn),
        log_user(user),
        recorder(warmroute::trace::DecisionRecorder::open(path, with_sink(options), recording)),
        router(recorder->ok() ? warmroute::Router((*recorder)->calls()) : warmroute::Router(with_sink(options))) {}
  wr_router(const wr_router&) = delete;
  wr_router& operator=(const wr_router&) = delete;

  wr_log_fn log;
  void* log_user;
  std::optional<warmroute::Result<warmroute::trace::DecisionRecorder>> recorder;  // its end may still log
  warmroute::Router router;                                                       // last: likewise

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

namespace warmroute::capi {

/// What wr_router_options say, read.
struct RouterMaking {
  RouterOptions options;
  wr_log_fn log = nullptr;
  void* log_user = nullptr;
};
/// `given` NULL: the defaults. returns: OK, or why they cannot be used.
wr_status read_router_options(const wr_router_options* given, RouterMaking& out, wr_error* err) noexcept;

}  // namespace warmroute::capi
