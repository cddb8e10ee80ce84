// What has a thread of its own (a poller, a subscriber) and calls Python from there: log, clock, pages.
// The end is what needs care. Joining that thread while holding the GIL would wait for ever if it wants the GIL: `close` gives it away.
// A thread cannot join itself; a forked child has no such thread; an interpreter that is ending lets no thread in any more. Then the worker
// and what it uses are left behind instead. warmroute/_background.py closes what is still open before the interpreter begins to end.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "router.hpp"
#include "warmroute/control/applier.hpp"

namespace warmroute::python {

inline bool interpreter_is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// The Python side of a worker: its callbacks, and the router that must outlive it. Lives as long as the worker does.
struct Callbacks {
  py::object router, log, clock, page;  // None where absent
  py::object same = py::none();         // of a file source; likewise the next two
  SnapshotApplier* applier = nullptr;   // `router` keeps it
  UsageTime last_times{};
  std::atomic<std::thread::id> thread{};  // that is inside a callback
  std::atomic<std::int64_t> last_ns{0};

  /// Calls `call` with the GIL; what it raises is reported and harms nothing.
  template <class Call>
  void enter(const char* what, Call&& call) {
    const AcquiredGil gil;
    const auto before = thread.exchange(std::this_thread::get_id());
    try {
      unless_ending([&] { call(); });
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable(what);
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
      PyErr_WriteUnraisable(nullptr);
    }
    thread.store(before);
  }
  static void write_log(void* user, LogLevel level, std::string_view message) {
    auto& self = *static_cast<Callbacks*>(user);
    self.enter("warmroute log callback", [&] {
      const py::object log = self.log;
      if (!log.is_none()) log(level, py::str(message.data(), message.size()));
    });
  }
  /// A clock that raises gives the time that it gave last.
  static Nanos read_clock(void* user) {
    auto& self = *static_cast<Callbacks*>(user);
    self.enter("warmroute clock", [&] {
      const py::object clock = self.clock;
      self.last_ns = clock.is_none() ? monotonic_now().value : clock().cast<std::int64_t>();
    });
    return Nanos{self.last_ns};
  }
};

template <class Worker>
class Background {
 public:
  Background(py::object router, std::optional<LogCallback::value_type> log,
             std::optional<ClockCallback::value_type> clock)
      : callbacks_(std::make_unique<Callbacks>()), process_(getpid()) {
    callbacks_->log = object_or_none(std::move(log));
    callbacks_->clock = object_or_none(std::move(clock));
    if (callbacks_->clock.is_none() && py::isinstance<PyRouter>(router))
      callbacks_->clock = router.cast<PyRouter&>().clock;
    callbacks_->page = py::none();
    callbacks_->router = std::move(router);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    if (worker_ == nullptr) return;
    if (process_ != getpid() || interpreter_is_ending()) leave_behind();
    else if (on_its_thread()) end_elsewhere();
    else close();
  }

  [[nodiscard]] Callbacks& callbacks() noexcept { return *callbacks_; }
  /// errors: as Worker::start.
  template <class Start>
  void begin(Start&& start) {
    auto started = [&] {
      const ReleasedGil gil;
      return start();
    }();
    worker_ = std::make_unique<Worker>(value_of(std::move(started)));
  }
  /// `call(worker)` without the GIL. errors: ValueError (closed, or of another process).
  template <class Call>
  auto with(Call&& call) {
    if (closing_ || worker_ == nullptr) throw py::value_error("it is closed");
    if (process_ != getpid()) throw py::value_error("its thread belongs to the process that made it: make another one");
    const Use use(on_its_thread() ? nullptr : &users_);  // the end waits for the thread itself anyhow
    const ReleasedGil gil;  // ends before `use`: whoever ends the worker then has the GIL to wait for
    return call(*worker_);
  }
  /// Ends the thread, in the middle of what it does. errors: RuntimeError (from one of its callbacks).
  void close() {
    if (closing_ || worker_ == nullptr) return;
    if (process_ != getpid()) return leave_behind();
    if (on_its_thread()) throw std::runtime_error("a callback runs on the thread that close would wait for");
    closing_ = true;
    {
      const ReleasedGil gil;
      for (int users = users_.load(); users != 0; users = users_.load()) users_.wait(users);
      worker_.reset();
    }
  }
  [[nodiscard]] bool on_its_thread() const noexcept { return callbacks_->thread.load() == std::this_thread::get_id(); }
  [[nodiscard]] bool closed() const noexcept { return closing_ || worker_ == nullptr; }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(callbacks_->router.ptr());
    Py_VISIT(callbacks_->log.ptr());
    Py_VISIT(callbacks_->clock.ptr());
    Py_VISIT(callbacks_->page.ptr());
    Py_VISIT(callbacks_->same.ptr());
    return 0;
  }
  /// Breaks cycles through the callbacks; the router stays, the thread uses it.
  void clear() { callbacks_->log = callbacks_->clock = callbacks_->page = callbacks_->same = py::none(); }

 private:
  /// One call that the end has to wait for.
  class Use {
   public:
    explicit Use(std::atomic<int>* users) noexcept : users_(users) {
      if (users_ != nullptr) users_->fetch_add(1);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (users_ != nullptr && users_->fetch_sub(1) == 1) users_->notify_all();
    }

   private:
    std::atomic<int>* users_;
  };
  void leave_behind() noexcept {
    (void)worker_.release();
    (void)callbacks_.release();
    callbacks_ = std::make_unique<Callbacks>();
    callbacks_->router = callbacks_->log = callbacks_->clock = callbacks_->page = py::none();
  }
  // Its own thread let go of it: another one waits for its end.
  void end_elsewhere() {
    std::thread([worker = worker_.release(), callbacks = callbacks_.release()] {
      delete worker;
      const AcquiredGil gil;
      delete callbacks;
    }).detach();
  }

  std::unique_ptr<Callbacks> callbacks_;
  std::unique_ptr<Worker> worker_;  // ends before what it calls
  pid_t process_;
  bool closing_ = false;  // under the GIL
  std::atomic<int> users_{0};
};

/// tp_traverse and tp_clear of a class whose C++ part has `traverse` and `clear`.
template <class T>
void setup_gc_of(PyHeapTypeObject* heap) {
  heap->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  heap->ht_type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return py::detail::is_holder_constructed(self) ? py::cast<T&>(py::handle(self)).traverse(visit, arg) : 0;
  };
  heap->ht_type.tp_clear = [](PyObject* self) {
    if (py::detail::is_holder_constructed(self)) py::cast<T&>(py::handle(self)).clear();
    return 0;
  };
}

}  // namespace warmroute::python
