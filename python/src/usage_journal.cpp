// Journal and JournalReader: begin before a request leaves, end after; and their records as JSON lines and FOCUS rows.
#include <utility>

#include "usage_event.hpp"

namespace warmroute::python {
namespace {

CursorPair pair_of(JournalCursor cursor) { return {cursor.segment, cursor.offset}; }

py::dict statistics_of(const JournalStatistics& s) {
  py::dict out;
  out["begins"] = s.begins;
  out["ends"] = s.ends;
  out["recovered"] = s.recovered;
  out["torn_bytes"] = s.torn_bytes;
  out["damaged"] = s.damaged;
  out["unbilled"] = s.unbilled;
  out["lost_ends"] = s.lost_ends;
  out["held_ends"] = s.held_ends;
  out["open"] = s.open;
  out["bytes"] = s.bytes;
  out["syncs"] = s.syncs;
  out["full"] = s.full;
  return out;
}

void bind_opening(py::class_<PyJournal>& c) {
  const JournalOptions d;
  c.def(py::init([](const py::object& directory, EnumArg<JournalSync> sync, std::uint64_t sync_bytes,
                    std::uint64_t segment_bytes, std::uint64_t max_bytes, EnumArg<JournalFull> on_full,
                    std::size_t max_held_ends) {
          JournalOptions options;
          options.sync = sync;
          options.sync_bytes = sync_bytes;
          options.segment_bytes = segment_bytes;
          options.max_bytes = max_bytes;
          options.on_full = on_full;
          options.max_held_ends = max_held_ends;
          const std::string path = path_of(directory);
          return std::make_unique<PyJournal>(value_of(without_gil([&] { return Journal::open(path, options); })), path);
        }),
        py::arg("directory"), py::kw_only(), py::arg_v("sync", EnumArg<JournalSync>{d.sync}, "'batched'"),
        py::arg("sync_bytes") = d.sync_bytes, py::arg("segment_bytes") = d.segment_bytes,
        py::arg("max_bytes") = d.max_bytes, py::arg_v("on_full", EnumArg<JournalFull>{d.on_full}, "'refuse'"),
        py::arg("max_held_ends") = d.max_held_ends)
      .def("close", &PyJournal::close,
           "Writes what is held and lets the directory go, once calls that are inside are over.")
      .def_property_readonly("closed", &PyJournal::closed, "Whether close was called.");
}

void bind_writing(py::class_<PyJournal>& c) {
  c.def(
       "_begin",
       [](PyJournal& self, const py::object& event) {
         const EventArg arg(event);
         return value_of(self.with([&](Journal& journal) { return journal.begin(arg.view()); }));
       },
       py::arg("estimate"))
      .def(
          "_end",
          [](PyJournal& self, std::uint64_t number, const py::object& event) {
            const EventArg arg(event);
            check(self.with([&](Journal& journal) { return journal.end(number, arg.view()); }));
          },
          py::arg("number"), py::arg("event"))
      .def(
          "withdraw",
          [](PyJournal& self, std::uint64_t number) {
            check(self.with([&](Journal& journal) { return journal.withdraw(number); }));
          },
          py::arg("number"), "It never left: nothing is handed over for it. errors: as end.")
      .def(
          "sync", [](PyJournal& self) { check(self.with([](Journal& journal) { return journal.sync(); })); },
          "Asks the disk to write. Tries held ends again. errors: Error io.")
      .def(
          "_acknowledge",
          [](PyJournal& self, std::uint64_t segment, std::uint64_t offset) {
            check(self.with([&](Journal& journal) { return journal.acknowledge({segment, offset}); }));
          },
          py::arg("segment"), py::arg("offset"))
      .def("_acknowledged",
           [](PyJournal& self) { return pair_of(self.with([](Journal& journal) { return journal.acknowledged(); })); })
      .def("_statistics", [](PyJournal& self) {
        return AnyDict(statistics_of(self.with([](Journal& journal) { return journal.statistics(); })));
      });
}

py::typing::Optional<AnyDict> next_record(PyJournalReader& self, bool begins) {
  const Turn turn(self.mutex);
  JournalRecord record;
  const bool more = value_of(without_gil([&] { return self.reader.next(record, begins); }));
  if (!more) return py::typing::Optional<AnyDict>(py::none());
  return py::typing::Optional<AnyDict>(record_fields(record));
}

// A record of Python's, as the exports take it.
template <class Export>
py::str exported(const py::object& source, Export&& append) {
  const EventArg event(source.attr("event"));
  JournalRecord record;
  record.kind = static_cast<JournalKind>(source.attr("kind").cast<int>());
  record.number = source.attr("number").cast<std::uint64_t>();
  record.event_id = source.attr("event_id").cast<std::string>();
  record.event = event.view();
  std::string out;
  append(record, out);
  return text_of(out);
}

}  // namespace

void bind_usage_journal(py::module_& m) {
  py::class_<PyJournal> c(m, "Journal", "See warmroute.usage.Journal.");
  bind_opening(c);
  bind_writing(c);
  py::class_<PyJournalReader>(m, "JournalReader", "See warmroute.usage.JournalReader.")
      .def(py::init([](const py::object& directory, std::uint64_t segment, std::uint64_t offset) {
             const std::string path = path_of(directory);
             return std::make_unique<PyJournalReader>(value_of(without_gil([&] {
               return JournalReader::open(path, {segment, offset});
             })));
           }),
           py::arg("directory"), py::arg("segment"), py::arg("offset"))
      .def("_next", &next_record, py::arg("begins"))
      .def("_cursor", [](PyJournalReader& self) {
        const Turn turn(self.mutex);
        return pair_of(self.reader.cursor());
      });
  m.def(
      "record_json_line", [](const py::object& record) { return exported(record, &append_json_line); },
      py::arg("record"));
  m.def(
      "record_focus_rows", [](const py::object& record) { return exported(record, &append_focus_rows); },
      py::arg("record"));
  m.def(
      "focus_header", [] { return text_of(focus_header()); },
      "The names of the columns of focus_rows, as one line of CSV.");
}

}  // namespace warmroute::python
