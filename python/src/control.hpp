// What the parts of control share: trust, snapshots as Python holds them, the applier with its callbacks.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "background.hpp"
#include "usage.hpp"
#include "warmroute/control/applier.hpp"

namespace warmroute::python {

/// What it was asked of stays while anybody holds it.
struct PySnapshot {
  std::shared_ptr<const Snapshot> snapshot;
};

/// What a Python exception says, as an error: warmroute.Error keeps its code. Takes it. The GIL is held.
Error error_of(py::error_already_set& error, std::string_view who);

/// The price table in force.
struct PyPriceSlot {
  py::object get();
  void set(PyPrices* table);

  PriceSlot slot;
  py::object shown = py::none();  // what was taken out last; the GIL guards it
};

/// An applier, what it fills, and whom it tells. Callbacks are called by whoever applies, with the GIL.
class PyApplier final : public SnapshotListener {
 public:
  struct Parts {
    py::object keys, limits, prices, router, check, applied, rolled_back;  // None where absent
  };
  PyApplier(ControlOptions options, Parts parts);
  PyApplier(const PyApplier&) = delete;
  PyApplier& operator=(const PyApplier&) = delete;

  /// `call(applier)` without the GIL. errors: RuntimeError from one of its callbacks, where it would wait for itself.
  template <class Call>
  auto with(Call&& call) {
    if (inside_.load() == std::this_thread::get_id())
      throw std::runtime_error("a callback of the applier must not change it: it would wait for itself");
    return without_gil([&] { return call(*applier_); });
  }
  [[nodiscard]] SnapshotApplier& applier() noexcept { return *applier_; }

  int traverse(visitproc visit, void* arg) const;
  /// Breaks cycles through the callbacks; what is filled stays.
  void clear() { parts_.check = parts_.applied = parts_.rolled_back = py::none(); }

 private:
  class Inside;
  Status check(const Snapshot& snapshot) override;
  void applied(const Snapshot& snapshot) override;
  void rolled_back(const RollbackRecord& record) override;
  py::object shown(const Snapshot& snapshot);

  Parts parts_;
  std::shared_ptr<const Snapshot> copy_;  // of the one that is being applied; changes take turns
  std::atomic<std::thread::id> inside_{};
  std::optional<SnapshotApplier> applier_;  // last: it uses the others
};

py::dict rollback_fields(const RollbackRecord& record);

}  // namespace warmroute::python
