/// A caller's clock and log for what has a thread of its own. Lives at one address, as long as the thread.
#pragma once

#include "support.hpp"
#include "warmroute/observe/log.hpp"

namespace warmroute::capi {

struct WorkerCalls {
  wr_clock_fn clock = nullptr;
  void* clock_user = nullptr;
  wr_log_fn log = nullptr;
  void* log_user = nullptr;

  /// Into options that have `clock`, `clock_user` and `log`: what the caller left NULL stays as it is there.
  template <class Options>
  void give(Options& options) {
    if (clock != nullptr) {
      options.clock = [](void* self) {
        const auto& calls = *static_cast<const WorkerCalls*>(self);
        return Nanos{calls.clock(calls.clock_user)};
      };
      options.clock_user = this;
    }
    if (log != nullptr) {
      options.log = {this, [](void* self, LogLevel level, std::string_view message) {
                       const auto& calls = *static_cast<const WorkerCalls*>(self);
                       calls.log(calls.log_user, static_cast<std::uint32_t>(level), str(message));
                     }};
    }
  }
};

}  // namespace warmroute::capi
