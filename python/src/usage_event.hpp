// UsageEvent between C++ and warmroute.usage.UsageEvent, a dataclass: attributes by name in, a dict of its fields out.
#pragma once

#include <array>
#include <optional>

#include "usage.hpp"

namespace warmroute::python {

/// What an event's attributes say. lifetime: holds the objects that `view` points into. Not movable.
class EventArg {
 public:
  /// errors: AttributeError, TypeError, ValueError: `event` is no UsageEvent.
  explicit EventArg(py::handle event);
  EventArg(const EventArg&) = delete;
  EventArg& operator=(const EventArg&) = delete;
  [[nodiscard]] const UsageEvent& view() const noexcept { return view_; }

 private:
  UsageEvent view_;
  std::array<py::object, 16> held_;
};

/// The fields of the dataclass.
py::dict event_fields(const UsageEvent& event);

/// The fields of JournalRecord; `event` as above.
py::dict record_fields(const JournalRecord& record);

/// Whoever is inside keeps the journal while another thread closes it.
class PyJournal {
 public:
  PyJournal(Journal opened, std::string where)
      : directory(std::move(where)), journal_(std::make_shared<Journal>(std::move(opened))) {}

  /// errors: ValueError: it is closed.
  [[nodiscard]] std::shared_ptr<Journal> shared() const {  // the GIL guards it
    if (journal_ == nullptr) throw py::value_error("the journal is closed");
    return journal_;
  }
  template <class Call>
  auto with(Call&& call) {
    const std::shared_ptr<Journal> journal = shared();
    const ReleasedGil gil;
    return call(*journal);
  }
  void close() {
    std::shared_ptr<Journal> journal = std::exchange(journal_, nullptr);
    const ReleasedGil gil;
    journal.reset();
  }
  [[nodiscard]] bool closed() const noexcept { return journal_ == nullptr; }

  const std::string directory;

 private:
  std::shared_ptr<Journal> journal_;
};

/// os.fspath
std::string path_of(const py::object& path);

/// The journal's calls give the GIL away: they write, and may wait for the disk.
using CursorPair = std::pair<std::uint64_t, std::uint64_t>;

/// A reader that calls take turns at.
struct PyJournalReader {
  explicit PyJournalReader(JournalReader opened) : reader(std::move(opened)) {}

  std::mutex mutex;
  JournalReader reader;
};

}  // namespace warmroute::python
