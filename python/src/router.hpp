// Router in Python: the library's router, its parsers, and the three callbacks: log, tokenizer, clock.
// Locks: whatever may wait for a lock of the router gives the GIL back first (`released`). Log lines are noted under the
// router's locks and delivered after the call, with the GIL and without any lock: a log callback may call the router.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "body.hpp"
#include "decision.hpp"
#include "request.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/trace/decision_recorder.hpp"

namespace warmroute::python {

/// Lines that wait for delivery. threads: any.
class LogQueue {
 public:
  using Line = std::pair<LogLevel, std::string>;

  static void write(void* user, LogLevel level, std::string_view message) {
    auto& self = *static_cast<LogQueue*>(user);
    const std::lock_guard lock(self.mutex_);
    self.lines_.emplace_back(level, message);
    self.waiting_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<Line> take() {
    const std::lock_guard lock(mutex_);
    waiting_.store(false, std::memory_order_relaxed);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Line> lines_;
  std::atomic<bool> waiting_{false};
};

class PyRouter {
 public:
  /// What the log of one that records is made of.
  struct Recording {
    std::string path;
    trace::DecisionLogOptions options;
  };
  PyRouter(RouterOptions options, py::object log, py::object tokenizer, py::object clock,
           const std::optional<Recording>& recording);
  PyRouter(const PyRouter&) = delete;
  PyRouter& operator=(const PyRouter&) = delete;

  /// `call` without the GIL, then the log lines that it left. For everything but the hot calls, which never wait.
  template <class Call>
  auto released(Call&& call) {
    if constexpr (std::is_void_v<decltype(call())>) {
      {
        const ReleasedGil gil;
        call();
      }
      deliver();
    } else {
      auto result = [&] {
        const ReleasedGil gil;
        return call();
      }();
      deliver();
      return result;
    }
  }

  [[nodiscard]] Nanos at(std::optional<std::int64_t> now_ns) const {
    if (now_ns) return Nanos{*now_ns};
    if (clock.is_none()) return monotonic_now();
    const py::object answer = unless_ending([&]() -> py::object { return clock(); });
    if (!PyLong_Check(answer.ptr())) throw py::type_error("clock() must return an int: nanoseconds");
    return Nanos{answer.cast<std::int64_t>()};
  }
  [[nodiscard]] RequestBodyOptions body_options_now(std::string_view tenant, std::string_view adapter) const {
    RequestBodyOptions options = body_options(router.policy());
    options.tenant = tenant;
    options.adapter = adapter;
    return options;
  }
  void deliver();

  py::object log, tokenizer, clock;  // None where absent
  ParserPool parsers;

 private:
  LogQueue lines_;  // before the router, which writes into it

 public:
  std::optional<trace::DecisionRecorder> recorder;
  Router router;
};

/// The Python object of a router that Python holds.
inline py::object object_of(PyRouter& router) { return py::cast(&router, py::return_value_policy::reference); }

using RouterClass = py::class_<PyRouter>;

void bind_membership(RouterClass& c);
void bind_routing(RouterClass& c);
void bind_statistics(RouterClass& c);
void bind_caches(RouterClass& c);
void bind_recording(RouterClass& c);
void bind_peers(RouterClass& c);

}  // namespace warmroute::python
