// A thread that sleeps until it is rung for, and how it ends. Private to lib.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "warmroute/result.hpp"

namespace warmroute::control {

// `run` looks at `stopping` under `mutex` and waits for `bell`. Its owner calls stop() before anything that it uses goes.
struct BellThread {
  mutable std::mutex mutex;
  std::condition_variable bell;
  bool stopping = false;

  // errors: io.
  template <class Run>
  Status start(const char* who, Run run) {
    try {
      thread_ = std::thread(std::move(run));
    } catch (const std::system_error& e) {
      return Error{Code::io, std::string(who) + ": no thread: " + e.what(), kNoOffset};
    }
    return {};
  }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    bell.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace warmroute::control
