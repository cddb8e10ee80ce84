// Giving the GIL away and taking it back, so that the interpreter may end at any moment.
// CPython before 3.14 ends a thread that wants the GIL back during finalization by pthread_exit: an unwinding that may neither
// pass a destructor nor be swallowed, else the process aborts; and Python objects on the way would be released without the GIL.
// So such a thread waits for the process's end where it is, as CPython 3.14 itself has it.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <utility>

namespace warmroute::python {

/// `call`, or no return at all where the interpreter ends the thread in it.
template <class Call>
auto unless_ending(Call&& call) -> decltype(call()) {
#ifdef __GLIBCXX__
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  return call();
#endif
}

/// The GIL is given away while this lives.
class ReleasedGil {
 public:
  ReleasedGil() noexcept : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil() {
    unless_ending([&] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

/// The GIL is held while this lives, whether the thread had it or not.
class AcquiredGil {
 public:
  AcquiredGil() : state_(unless_ending([] { return PyGILState_Ensure(); })) {}
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;
  ~AcquiredGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace warmroute::python
