#include "warmroute/trace/trace_writer.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "trace/forms/form.hpp"
#include "trace/forms/line_source.hpp"
#include "warmroute/replica/replica.hpp"

namespace warmroute::trace {
namespace {

void append_number(std::string& out, const char* name, std::int64_t value) {
  out.append(",\"").append(name).append("\":").append(std::to_string(value));
}

// Milliseconds with what decimals are needed: they read back as the same microseconds.
void append_ms(std::string& out, std::int64_t us) {
  out += std::to_string(us / 1'000);
  if (us % 1'000 == 0) return;
  char decimals[8];
  std::snprintf(decimals, sizeof decimals, ".%03d", static_cast<int>(us % 1'000));
  out += decimals;
  while (out.back() == '0') out.pop_back();
}

void append_text(std::string& out, const char* name, std::string_view text) {
  if (text.empty()) return;
  out.append(",\"").append(name).append("\":\"");
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

// Of smaller blocks, the last one inside stands for all before it.
Status append_blocks(const TraceRecord& record, std::string& out) {
  const std::int64_t size = record.block_tokens;
  if (size < 1 || kMooncakeBlockTokens % size != 0)
    return Error{
        Code::unsupported,
        "blocks of " + std::to_string(size) + " tokens do not fill blocks of 512: this record cannot be written",
        kNoOffset};
  const auto most = static_cast<std::size_t>((record.input_tokens + size - 1) / size);
  if (record.blocks.size() > most)
    return Error{Code::value_out_of_range, "the record has more block ids than its prompt has blocks", kNoOffset};
  const auto joined = static_cast<std::size_t>(kMooncakeBlockTokens / size);
  for (std::size_t i = 0; i < record.blocks.size(); i += joined) {
    if (i > 0) out += ',';
    out += std::to_string(record.blocks[std::min(i + joined, record.blocks.size()) - 1]);
  }
  return {};
}

Status append_line(const TraceRecord& r, std::string& out) {
  for (const std::int64_t time : {r.arrival_us, r.think_us, r.ttft_us.value_or(0)}) {
    if (time < 0 || time > kMostTimeUs)
      return Error{Code::value_out_of_range, "the record has a time before the start or beyond 63 years", kNoOffset};
  }
  for (const std::int64_t count :
       {r.input_tokens, r.output_tokens, r.max_output_tokens.value_or(0), r.cached_tokens.value_or(0)}) {
    if (count < 0) return Error{Code::value_out_of_range, "the record has a negative count of tokens", kNoOffset};
  }
  for (const std::string* name : {&r.model, &r.adapter, &r.request_class}) {
    if (!detail::is_plain_utf8(*name))
      return Error{Code::invalid_utf8, "model, adapter and class must be UTF-8 without control characters", kNoOffset};
  }
  out += "{\"timestamp\":";
  append_ms(out, r.arrival_us);
  append_number(out, "input_length", r.input_tokens);
  append_number(out, "output_length", r.output_tokens);
  out += ",\"hash_ids\":[";
  if (auto blocks = append_blocks(r, out); !blocks) return blocks;
  out += ']';
  if (r.session != 0) {
    char session[32];
    std::snprintf(session, sizeof session, "#%016" PRIx64, r.session);
    append_text(out, "session_id", session);
  }
  append_text(out, "model", r.model);
  append_text(out, "adapter", r.adapter);
  append_text(out, "class", r.request_class);
  if (r.priority) append_number(out, "priority", *r.priority);
  if (r.max_output_tokens) append_number(out, "max_output_length", *r.max_output_tokens);
  if (r.cached_tokens) append_number(out, "cached_tokens", *r.cached_tokens);
  if (r.ttft_us) {
    out += ",\"ttft_ms\":";
    append_ms(out, *r.ttft_us);
  }
  if (r.stream) out += *r.stream ? ",\"stream\":true" : ",\"stream\":false";
  if (r.cancelled) out += ",\"cancelled\":true";
  if (r.follows != 0) append_number(out, "follows", r.follows);
  if (r.think_us != 0) {
    out += ",\"delay\":";
    append_ms(out, r.think_us);
  }
  out += "}\n";
  return {};
}

}  // namespace

Status append_mooncake_line(const TraceRecord& record, std::string& out) {
  const std::size_t before = out.size();
  auto appended = append_line(record, out);
  if (!appended) out.resize(before);
  return appended;
}

struct TraceWriter::State {
  explicit State(std::string p, gzFile f) : path(std::move(p)), file(f) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) gzclose(file);
  }
  [[nodiscard]] Error failed() const {
    return {Code::io, path + ": cannot be written: " + std::strerror(errno), kNoOffset};
  }

  std::string path;
  gzFile file;
  std::string line;
};

TraceWriter::TraceWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::open(const std::string& path) {
  auto file = open_gz(path, path.ends_with(".gz") ? "wb" : "wbT");  // T: as it is
  if (!file) return file.error();
  return TraceWriter{std::make_unique<State>(path, *file)};
}

Status TraceWriter::write(const TraceRecord& record) {
  State& s = *state_;
  if (s.file == nullptr) return Error{Code::io, s.path + ": closed", kNoOffset};
  s.line.clear();
  if (auto appended = append_mooncake_line(record, s.line); !appended) return appended;
  if (gzwrite(s.file, s.line.data(), static_cast<unsigned>(s.line.size())) != static_cast<int>(s.line.size()))
    return s.failed();
  return {};
}

Status TraceWriter::close() {
  State& s = *state_;
  if (s.file == nullptr) return {};
  return gzclose(std::exchange(s.file, nullptr)) == Z_OK ? Status{} : Status{s.failed()};
}

}  // namespace warmroute::trace
