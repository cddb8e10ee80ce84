// What the bindings of traces, decision logs and simulations share.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "usage_event.hpp"
#include "warmroute/trace/decision_log.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::python {

using trace::TraceFormat;
WARMROUTE_ENUM_NAMES(TraceFormat, 7, "automatic", "mooncake", "qwen", "burstgpt", "azure", "ragpulse", "weka");

/// Whoever is inside keeps the object while another thread closes it.
template <class T>
class Closable {
 public:
  Closable(T opened, const char* what) : held_(std::make_shared<Held>(std::move(opened))), what_(what) {}

  /// `call(object)` without the GIL, one thread at a time.
  template <class Call>
  auto with(Call&& call) {
    const std::shared_ptr<Held> held = held_;  // the GIL guards it
    if (held == nullptr) throw py::value_error(std::string("the ") + what_ + " is closed");
    const Turn turn(held->mutex);
    const ReleasedGil gil;
    return call(held->object);
  }
  void close() {
    std::shared_ptr<Held> held = std::exchange(held_, nullptr);
    const ReleasedGil gil;
    held.reset();
  }
  [[nodiscard]] bool closed() const noexcept { return held_ == nullptr; }

 private:
  struct Held {
    explicit Held(T opened) : object(std::move(opened)) {}
    std::mutex mutex;
    T object;
  };
  std::shared_ptr<Held> held_;
  const char* what_;
};

}  // namespace warmroute::python
