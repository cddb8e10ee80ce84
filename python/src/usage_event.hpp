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

/// The journal's calls give the GIL away: they write, and may wait for the disk.
using CursorPair = std::pair<std::uint64_t, std::uint64_t>;

/// A reader that calls take turns at.
struct PyJournalReader {
  explicit PyJournalReader(JournalReader opened) : reader(std::move(opened)) {}

  std::mutex mutex;
  JournalReader reader;
};

}  // namespace warmroute::python
