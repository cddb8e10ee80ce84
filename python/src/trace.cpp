// Traces of requests: records, a reader of the published forms, a writer of one.
#include "trace.hpp"

#include <utility>

#include "warmroute/trace/trace_writer.hpp"

namespace warmroute::python {
namespace {

using trace::TraceLimits;
using trace::TraceOptions;
using trace::TraceReader;
using trace::TraceRecord;
using trace::TraceWriter;

std::string trace_record_repr(const TraceRecord& r) {
  return "TraceRecord(arrival_us=" + std::to_string(r.arrival_us) + ", input_tokens=" + std::to_string(r.input_tokens) +
         ", output_tokens=" + std::to_string(r.output_tokens) + ", " + std::to_string(r.blocks.size()) + " blocks of " +
         std::to_string(r.block_tokens) + ")";
}

using TraceText = py::typing::Union<py::bytes, py::str>;

// The text outlives the reader, since it is here.
struct PyTraceReader {
  PyTraceReader(std::string content, TraceReader opened) : text(std::move(content)), reader(std::move(opened)) {}
  std::string text;
  std::mutex mutex;
  TraceReader reader;
};

TraceRecord next_trace_record(PyTraceReader& self) {
  const Turn turn(self.mutex);
  TraceRecord record;
  const bool more = value_of(without_gil([&] { return self.reader.next(record); }));
  if (!more) throw py::stop_iteration();
  return record;
}

TraceRecord make_trace_record(std::int64_t arrival_us, std::int64_t input_tokens, std::int64_t output_tokens,
                              std::uint64_t session, const std::optional<py::object>& blocks, std::int64_t block_tokens,
                              std::string model, std::string adapter, std::string request_class,
                              std::optional<std::int32_t> priority, std::optional<std::int64_t> max_output_tokens,
                              std::optional<std::int64_t> cached_tokens, std::optional<std::int64_t> ttft_us,
                              std::optional<bool> stream, bool cancelled, std::uint32_t follows,
                              std::int64_t think_us) {
  TraceRecord r;
  r.arrival_us = arrival_us;
  r.input_tokens = input_tokens;
  r.output_tokens = output_tokens;
  r.session = session;
  if (blocks) {
    HashView ids;
    ids.take(*blocks);
    r.blocks.assign(ids.span().begin(), ids.span().end());
  }
  r.block_tokens = block_tokens;
  r.model = std::move(model);
  r.adapter = std::move(adapter);
  r.request_class = std::move(request_class);
  r.priority = priority;
  r.max_output_tokens = max_output_tokens;
  r.cached_tokens = cached_tokens;
  r.ttft_us = ttft_us;
  r.stream = stream;
  r.cancelled = cancelled;
  r.follows = follows;
  r.think_us = think_us;
  return r;
}

void bind_trace_record(py::module_& m) {
  const TraceRecord d;
  const std::optional<py::object> none;
  py::class_<TraceRecord>(m, "TraceRecord",
                          "One request of a trace. What a trace does not say is None, '' or 0.\n\n"
                          "arrival_us: since the start of the trace; of conversations (weka) since their own. "
                          "blocks: uint64[n], an id stands\n"
                          "for its block and all before it. follows: it waits for the end of the record that came so "
                          "many before it, and think_us.")
      .def(py::init(&make_trace_record), py::kw_only(), py::arg("arrival_us") = d.arrival_us,
           py::arg("input_tokens") = d.input_tokens, py::arg("output_tokens") = d.output_tokens,
           py::arg("session") = d.session, py::arg("blocks") = none, py::arg("block_tokens") = d.block_tokens,
           py::arg("model") = "", py::arg("adapter") = "", py::arg("request_class") = "",
           py::arg("priority") = std::nullopt, py::arg("max_output_tokens") = std::nullopt,
           py::arg("cached_tokens") = std::nullopt, py::arg("ttft_us") = std::nullopt, py::arg("stream") = std::nullopt,
           py::arg("cancelled") = false, py::arg("follows") = 0, py::arg("think_us") = 0)
      .def_readonly("arrival_us", &TraceRecord::arrival_us)
      .def_readonly("input_tokens", &TraceRecord::input_tokens)
      .def_readonly("output_tokens", &TraceRecord::output_tokens, "0: the trace has no answer for it.")
      .def_readonly("session", &TraceRecord::session, "Hash of the session id; 0: none.")
      .def_property_readonly(
          "blocks",
          [](const py::object& self) {
            const auto& r = self.cast<const TraceRecord&>();
            return array_view<std::uint64_t>(std::span<const std::uint64_t>(r.blocks), self);
          },
          "Read-only view; shape uint64[n].")
      .def_readonly("block_tokens", &TraceRecord::block_tokens)
      .def_property_readonly("model", [](const TraceRecord& r) { return text_of(r.model); })
      .def_property_readonly("adapter", [](const TraceRecord& r) { return text_of(r.adapter); })
      .def_property_readonly("request_class", [](const TraceRecord& r) { return text_of(r.request_class); })
      .def_readonly("priority", &TraceRecord::priority)
      .def_readonly("max_output_tokens", &TraceRecord::max_output_tokens)
      .def_readonly("cached_tokens", &TraceRecord::cached_tokens, "As the engine counted them when it was recorded.")
      .def_readonly("ttft_us", &TraceRecord::ttft_us, "Time to its first token when it was recorded.")
      .def_readonly("stream", &TraceRecord::stream)
      .def_readonly("cancelled", &TraceRecord::cancelled, "It ended without its whole answer.")
      .def_readonly("follows", &TraceRecord::follows)
      .def_readonly("think_us", &TraceRecord::think_us)
      .def(
          "mooncake_line",
          [](const TraceRecord& r) {
            std::string line;
            check(append_mooncake_line(r, line));
            return line;
          },
          "The record as one JSON line of the Mooncake form, its line feed included. errors: as TraceWriter.write.")
      .def(
          "__eq__", [](const TraceRecord& a, const TraceRecord& b) { return a == b; }, py::is_operator())
      .def("__hash__",
           [](const TraceRecord& r) {
             return py::hash(py::make_tuple(r.arrival_us, r.input_tokens, r.output_tokens, r.session));
           })
      .def("__repr__", &trace_record_repr);
}

void bind_trace_reader(py::module_& m) {
  const TraceLimits limits;
  const TraceOptions options;
  const auto limits_of = [](std::size_t max_line_bytes, std::int64_t max_tokens, std::int64_t max_blocks,
                            std::size_t max_chats) {
    return TraceLimits{max_line_bytes, max_tokens, max_blocks, max_chats};
  };
  py::class_<PyTraceReader>(m, "TraceReader", "See warmroute.trace.TraceReader.")
      .def(py::init([limits_of](const std::optional<py::object>& path, const std::optional<TraceText>& text,
                                EnumArg<TraceFormat> format, std::int64_t conversation_gap_us,
                                bool share_system_prompts, std::uint64_t block_salt, std::size_t max_line_bytes,
                                std::int64_t max_tokens, std::int64_t max_blocks, std::size_t max_chats) {
             if (path.has_value() == text.has_value()) throw py::type_error("give either a path or text");
             const TraceLimits within = limits_of(max_line_bytes, max_tokens, max_blocks, max_chats);
             const TraceOptions chosen{format, conversation_gap_us, share_system_prompts, block_salt};
             if (path) {
               const std::string name = path_of(*path);
               auto opened = value_of(without_gil([&] { return TraceReader::open(name, within, chosen); }));
               return std::make_unique<PyTraceReader>(std::string{}, std::move(opened));
             }
             BytesView bytes;
             if (!bytes.take(*text)) throw py::type_error("text must be bytes or str");
             auto held = std::make_unique<PyTraceReader>(std::string(bytes.text()), TraceReader::from_text({}));
             held->reader = TraceReader::from_text(held->text, within, chosen);
             return held;
           }),
           py::arg("path") = std::optional<py::object>{}, py::kw_only(), py::arg("text") = std::optional<TraceText>{},
           py::arg_v("format", EnumArg<TraceFormat>{}, "'automatic'"),
           py::arg("conversation_gap_us") = options.conversation_gap_us,
           py::arg("share_system_prompts") = options.share_system_prompts, py::arg("block_salt") = options.block_salt,
           py::arg("max_line_bytes") = limits.max_line_bytes, py::arg("max_tokens") = limits.max_tokens,
           py::arg("max_blocks") = limits.max_blocks, py::arg("max_chats") = limits.max_chats)
      .def("__iter__", [](PyTraceReader& self) -> PyTraceReader& { return self; })
      .def("__next__", &next_trace_record)
      .def_property_readonly(
          "line",
          [](PyTraceReader& self) {
            const Turn turn(self.mutex);
            return self.reader.line();
          },
          "Number of the line read last, from 1.")
      .def_property_readonly(
          "format",
          [](PyTraceReader& self) {
            const Turn turn(self.mutex);
            return self.reader.format();
          },
          "automatic until the first line told it.");
  m.def(
      "detect_trace_format",
      [](const py::object& path) {
        const std::string name = path_of(path);
        return value_of(without_gil([&] { return trace::detect_trace_format_of_file(name); }));
      },
      py::arg("path"), "errors: Error io, too_large, unsupported (none of the known forms).");
}

using PyTraceWriter = Closable<TraceWriter>;

void bind_trace_writer(py::module_& m) {
  py::class_<PyTraceWriter>(m, "TraceWriter", "See warmroute.trace.TraceWriter.")
      .def(py::init([](const py::object& path) {
             const std::string name = path_of(path);
             return std::make_unique<PyTraceWriter>(value_of(without_gil([&] { return TraceWriter::open(name); })),
                                                    "writer");
           }),
           py::arg("path"))
      .def(
          "write",
          [](PyTraceWriter& self, const TraceRecord& record) {
            check(self.with([&](TraceWriter& writer) { return writer.write(record); }));
          },
          py::arg("record"),
          "errors: Error unsupported (block_tokens does not divide 512), value_out_of_range, invalid_utf8: the file "
          "goes on without\nthat record; io. ValueError: closed.")
      .def(
          "close",
          [](PyTraceWriter& self) {
            if (self.closed()) return;
            const Status closed = self.with([](TraceWriter& writer) { return writer.close(); });
            self.close();
            check(closed);
          },
          "Writes what is left; again does nothing. errors: Error io.")
      .def_property_readonly("closed", &PyTraceWriter::closed);
}

}  // namespace

void bind_trace(py::module_& m) {
  bind_enum<TraceFormat>(m, "The published forms of traces. automatic: told by the first line.");
  bind_trace_record(m);
  bind_trace_reader(m);
  bind_trace_writer(m);
}

}  // namespace warmroute::python
