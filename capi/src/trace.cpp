// Traces of requests: a reader of the published forms, a writer of one.
#include "warmroute/trace/trace.hpp"

#include <memory>
#include <string>

#include "support.hpp"
#include "warmroute/trace/trace_writer.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_trace_reader {
  trace::TraceReader reader;
  trace::TraceRecord record;  // what the last wr_trace_record points to
};

struct wr_trace_writer {
  trace::TraceWriter writer;
  bool closed = false;
};

namespace {

const wr_trace_record kTraceRecordDefaults = WR_TRACE_RECORD_INIT;
const wr_trace_options kTraceDefaults = WR_TRACE_OPTIONS_INIT;
constexpr std::string_view kNoTraceWriter = "writer is NULL";

wr_status read_trace_options(const wr_trace_options* given, trace::TraceLimits& limits, trace::TraceOptions& out,
                             wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_trace_options> in(given, kTraceDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->format > WR_TRACE_WEKA) return fail(err, Code::out_of_range, "format is not one of WR_TRACE_...");
  out.format = static_cast<trace::TraceFormat>(in->format);
  out.share_system_prompts = in->share_system_prompts != 0;
  out.conversation_gap_us = in->conversation_gap_us;
  out.block_salt = in->block_salt;
  limits.max_line_bytes = in->max_line_bytes;
  limits.max_tokens = in->max_tokens;
  limits.max_blocks = in->max_blocks;
  limits.max_chats = in->max_chats;
  return WR_STATUS_OK;
}

wr_trace_record record_out(const trace::TraceRecord& r) noexcept {
  wr_trace_record out = WR_TRACE_RECORD_INIT;
  out.cancelled = r.cancelled ? 1 : 0;
  out.arrival_us = r.arrival_us;
  out.input_tokens = r.input_tokens;
  out.output_tokens = r.output_tokens;
  out.session = r.session;
  out.blocks = r.blocks.empty() ? nullptr : r.blocks.data();
  out.block_count = r.blocks.size();
  out.block_tokens = r.block_tokens;
  out.model = str(r.model);
  out.adapter = str(r.adapter);
  out.request_class = str(r.request_class);
  out.max_output_tokens = r.max_output_tokens.value_or(WR_UNKNOWN);
  out.cached_tokens = r.cached_tokens.value_or(WR_UNKNOWN);
  out.ttft_us = r.ttft_us.value_or(WR_UNKNOWN);
  out.priority = r.priority.value_or(0);
  out.has_priority = r.priority ? 1 : 0;
  if (r.stream) out.stream = *r.stream ? 1 : 0;
  out.follows = r.follows;
  out.think_us = r.think_us;
  return out;
}

trace::TraceRecord record_in(const wr_trace_record& r) {
  const auto known = [](std::int64_t count) {
    return count == WR_UNKNOWN ? std::optional<std::int64_t>{} : std::optional<std::int64_t>{count};
  };
  trace::TraceRecord out;
  out.cancelled = r.cancelled != 0;
  out.arrival_us = r.arrival_us;
  out.input_tokens = r.input_tokens;
  out.output_tokens = r.output_tokens;
  out.session = r.session;
  if (r.block_count > 0) out.blocks.assign(r.blocks, r.blocks + r.block_count);
  out.block_tokens = r.block_tokens;
  out.model = view(r.model);
  out.adapter = view(r.adapter);
  out.request_class = view(r.request_class);
  out.max_output_tokens = known(r.max_output_tokens);
  out.cached_tokens = known(r.cached_tokens);
  out.ttft_us = known(r.ttft_us);
  if (r.has_priority != 0) out.priority = r.priority;
  if (r.stream != WR_UNKNOWN) out.stream = r.stream != 0;
  out.follows = r.follows;
  out.think_us = r.think_us;
  return out;
}

// returns: OK, or why a record cannot be read.
wr_status check_record(const Input<wr_trace_record>& in, wr_error* err) noexcept {
  if (!in) return in.refuse(err, "record is NULL");
  if (!readable(in->model) || !readable(in->adapter) || !readable(in->request_class) ||
      !readable(in->blocks, in->block_count)) {
    return null_argument(err, "a string or list of the record has a size and no data");
  }
  return WR_STATUS_OK;
}

}  // namespace

extern "C" {

const char* wr_trace_format_name(uint32_t format) {
  return format <= WR_TRACE_WEKA ? trace_format_name(static_cast<trace::TraceFormat>(format)).data() : "unknown";
}

uint32_t wr_trace_detect(wr_str first_line) {
  if (!readable(first_line)) return WR_TRACE_AUTOMATIC;
  uint32_t format = WR_TRACE_AUTOMATIC;
  static_cast<void>(guard(nullptr, [&] {
    const auto found = trace::detect_trace_format(view(first_line));
    if (found) format = static_cast<std::uint32_t>(*found);
    return WR_STATUS_OK;
  }));
  return format;
}

wr_status wr_trace_detect_file(wr_str path, uint32_t* format, wr_error* err) {
  if (format == nullptr || !readable(path)) return null_argument(err, "format is NULL, or path has no data");
  return guard(err, [&] {
    const auto found = trace::detect_trace_format_of_file(std::string(view(path)));
    if (!found) return fail(err, found.error());
    *format = static_cast<std::uint32_t>(*found);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_trace_open(wr_str path, const wr_trace_options* options, wr_trace_reader** out, wr_error* err) {
  if (out == nullptr || !readable(path)) return null_argument(err, "out is NULL, or path has no data");
  trace::TraceLimits limits;
  trace::TraceOptions chosen;
  if (const wr_status bad = read_trace_options(options, limits, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    auto reader = trace::TraceReader::open(std::string(view(path)), limits, chosen);
    if (!reader) return fail(err, reader.error());
    *out = std::make_unique<wr_trace_reader>(wr_trace_reader{std::move(*reader), {}}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_trace_from_text(wr_str text, const wr_trace_options* options, wr_trace_reader** out, wr_error* err) {
  if (out == nullptr || !readable(text)) return null_argument(err, "out is NULL, or text has no data");
  trace::TraceLimits limits;
  trace::TraceOptions chosen;
  if (const wr_status bad = read_trace_options(options, limits, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    *out = std::make_unique<wr_trace_reader>(
               wr_trace_reader{trace::TraceReader::from_text(view(text), limits, chosen), {}})
               .release();
    return WR_STATUS_OK;
  });
}

void wr_trace_free(wr_trace_reader* reader) { delete reader; }

wr_status wr_trace_next(wr_trace_reader* reader, wr_trace_record* out, uint32_t* found, wr_error* err) {
  if (reader == nullptr || found == nullptr) return null_argument(err, "reader or found is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const auto more = reader->reader.next(reader->record);
    if (!more) return fail(err, more.error());
    *found = *more ? 1 : 0;
    if (*more) write(out, record_out(reader->record));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

uint64_t wr_trace_line(const wr_trace_reader* reader) { return reader == nullptr ? 0 : reader->reader.line(); }
uint32_t wr_trace_format(const wr_trace_reader* reader) {
  return reader == nullptr ? static_cast<uint32_t>(WR_TRACE_AUTOMATIC) : static_cast<uint32_t>(reader->reader.format());
}

wr_status wr_trace_writer_open(wr_str path, wr_trace_writer** out, wr_error* err) {
  if (out == nullptr || !readable(path)) return null_argument(err, "out is NULL, or path has no data");
  return guard(err, [&] {
    auto writer = trace::TraceWriter::open(std::string(view(path)));
    if (!writer) return fail(err, writer.error());
    *out = std::make_unique<wr_trace_writer>(wr_trace_writer{std::move(*writer)}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_trace_writer_write(wr_trace_writer* writer, const wr_trace_record* record, wr_error* err) {
  if (writer == nullptr) return null_argument(err, kNoTraceWriter);
  const Input<wr_trace_record> in(record, kTraceRecordDefaults);
  if (const wr_status bad = check_record(in, err); bad != WR_STATUS_OK) return bad;
  if (writer->closed) return fail(err, Code::invalid_argument, "the writer is closed");
  return guard(err, [&] { return done(writer->writer.write(record_in(*in)), err); });
}

wr_status wr_trace_writer_close(wr_trace_writer* writer, wr_error* err) {
  if (writer == nullptr) return null_argument(err, kNoTraceWriter);
  if (writer->closed) return WR_STATUS_OK;
  writer->closed = true;
  return guard(err, [&] { return done(writer->writer.close(), err); });
}

void wr_trace_writer_free(wr_trace_writer* writer) { delete writer; }

wr_status wr_trace_mooncake_line(const wr_trace_record* record, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  const Input<wr_trace_record> in(record, kTraceRecordDefaults);
  if (const wr_status bad = check_record(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    std::string line;
    if (const Status written = append_mooncake_line(record_in(*in), line); !written) return fail(err, written.error());
    return give(line, 1, buf, cap, needed, err);
  });
}

}  // extern "C"
