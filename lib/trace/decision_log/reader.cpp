#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "trace/decision_log/codec.hpp"

namespace warmroute::trace {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;

// A log says how large its router was; what no router of this library's users is, is not believed.
bool believable(const RouterOptions& o) noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 26;
  return o.max_replicas <= 16'384 && o.max_tickets <= kMost && o.session_entries <= kMost &&
         o.shared_prefix_entries <= kMost && o.placement_queue <= kMost;
}

}  // namespace

struct DecisionLogReader::State {
  struct FileCloser {
    void operator()(std::FILE* open) const noexcept { std::fclose(open); }
  };

  // Reads on until `bytes` lie behind `begin`, or the file ends. returns: whether they do.
  Result<bool> hold(std::size_t wanted) {
    while (view().size() < wanted && file != nullptr && !at_end) {
      buffer.erase(0, begin);
      begin = 0;
      const std::size_t had = buffer.size();
      const std::size_t more = std::max(kReadBytes, std::min(wanted - had, kReadBytes * 16));
      buffer.resize(had + more);
      const std::size_t got = std::fread(buffer.data() + had, 1, more, file.get());
      buffer.resize(had + got);
      if (got < more && std::ferror(file.get()) != 0)
        return Error{Code::io, name + ": cannot read on: " + std::strerror(errno), offset};
      at_end = got < more;
    }
    return view().size() >= wanted;
  }
  [[nodiscard]] std::string_view view() const noexcept {
    return file != nullptr ? std::string_view(buffer).substr(begin) : memory.substr(begin);
  }
  void use(std::size_t bytes) noexcept {
    begin += bytes;
    offset += bytes;
  }
  Error over(Error error) {
    ended = true;
    error.message = name + ": record " + std::to_string(number) + ": " + error.message;
    error.offset = offset;
    return error;
  }
  bool cut() {
    ended = true;
    torn = view().size();
    return false;
  }
  Status begin_reading() {
    auto held = hold(kReadBytes);
    if (!held) return held.error();
    auto size = read_head(view(), head);
    if (!size) return Error{size.code(), name + ": " + size.error().message, size.error().offset};
    if (*size == 0) return Error{Code::malformed, name + ": the head of the decision log is not all there", 0};
    if (!believable(head.options)) return Error{Code::malformed, name + ": the log's router has absurd sizes", 0};
    use(*size);
    return {};
  }

  std::string name = "decision log";
  std::unique_ptr<std::FILE, FileCloser> file;
  std::string_view memory;
  std::string buffer;
  std::size_t begin = 0;
  std::uint64_t offset = 0;
  bool at_end = false;
  bool ended = false;
  DecisionLogLimits limits;
  DecisionLogHead head;
  std::uint64_t number = 0;
  Nanos before{0};
  std::uint64_t torn = 0;
};

DecisionLogReader::DecisionLogReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
DecisionLogReader::DecisionLogReader(DecisionLogReader&&) noexcept = default;
DecisionLogReader& DecisionLogReader::operator=(DecisionLogReader&&) noexcept = default;
DecisionLogReader::~DecisionLogReader() = default;

Result<DecisionLogReader> DecisionLogReader::open(const std::string& path, const DecisionLogLimits& limits) {
  auto state = std::make_unique<State>();
  state->name = path;
  state->limits = limits;
  state->file.reset(std::fopen(path.c_str(), "rb"));
  if (state->file == nullptr) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  if (auto begun = state->begin_reading(); !begun) return begun.error();
  return DecisionLogReader{std::move(state)};
}

Result<DecisionLogReader> DecisionLogReader::from_bytes(std::string_view bytes, const DecisionLogLimits& limits) {
  auto state = std::make_unique<State>();
  state->memory = bytes;
  state->limits = limits;
  if (auto begun = state->begin_reading(); !begun) return begun.error();
  return DecisionLogReader{std::move(state)};
}

Result<bool> DecisionLogReader::next(DecisionRecord& record) {
  State& s = *state_;
  if (s.ended) return false;
  if (auto held = s.hold(16); !held) return s.over(held.error());
  if (s.view().empty()) {
    s.ended = true;
    return false;
  }
  FrameView frame = read_frame(s.view(), s.head.log_number, s.number);
  if (frame.length > s.limits.max_record_bytes && frame.bytes != 0)
    return s.over({Code::too_large, "longer than " + std::to_string(s.limits.max_record_bytes) + " bytes", 0});
  if (frame.state == Frame::cut) {
    auto held = s.hold(frame.bytes);
    if (!held) return s.over(held.error());
    if (!*held || frame.bytes == 0) return s.cut();
    frame = read_frame(s.view(), s.head.log_number, s.number);
  }
  if (frame.state != Frame::whole) {
    // The last thing in the file, half on the disk, or zeros that a crash left: a torn tail. Otherwise somebody changed it.
    auto more = s.hold(frame.bytes + 1);
    if (!more) return s.over(more.error());
    if (!*more || s.view().find_first_not_of('\0') == std::string_view::npos) return s.cut();
    return s.over({Code::malformed, "is damaged; what is before it can be used", 0});
  }
  if (auto read = read_content(frame.content, s.before, record); !read) return s.over(read.error());
  record.number = s.number++;
  s.before = record.now;
  s.use(frame.bytes);
  return true;
}

const RouterOptions& DecisionLogReader::router_options() const noexcept { return state_->head.options; }
std::uint64_t DecisionLogReader::torn_bytes() const noexcept { return state_->torn; }

}  // namespace warmroute::trace
