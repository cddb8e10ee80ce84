// Holds each event until it is known not to be the usage chunk.
#include <algorithm>
#include <string>

#include "usage/json_scan.hpp"
#include "usage/json_sieve.hpp"
#include "usage/sse_lines.hpp"
#include "warmroute/usage/request_side.hpp"

namespace warmroute {

struct UsageChunkFilter::Impl final : usage::SseSink {
  enum class Mode : std::uint8_t { unknown, events, pass };
  static constexpr std::size_t kMostHeldBytes = 16'384;  // a usage chunk is a twentieth of it

  Impl() { held.reserve(kMostHeldBytes); }
  virtual ~Impl() = default;

  void feed(std::string_view more, std::string& to) {
    to.reserve(to.size() + held.size() + more.size());  // here, since what follows must not throw
    out = &to;
    bytes = more;
    if (mode == Mode::unknown) detect();
    if (mode == Mode::pass) {
      to.append(more);
      return;
    }
    if (swallow_lf && !bytes.empty()) {
      swallow_lf = false;
      if (bytes.front() == '\n') lines.feed(bytes.substr(0, 1), *this);  // it is the end of a line that is gone
      if (bytes.front() == '\n') bytes.remove_prefix(1);
    }
    begin = 0;
    lines.feed(bytes, *this);
    hold(bytes.substr(begin));
  }

  void finish(std::string& to) {
    out = &to;
    bytes = {};
    begin = 0;
    if (lines.in_event() && is_usage_chunk()) {
      held.clear();
      removed = true;
    }
    to.append(held);
    held.clear();
  }

  void detect() {
    for (const char c : bytes) {
      if (usage::is_json_space(c)) continue;
      const bool json = c == '{' || c == '[';  // an error instead of a stream
      mode = json ? Mode::pass : Mode::events;
      if (json) out->append(held);
      if (json) held.clear();
      return;
    }
  }

  // ---- of the event
  void whole_event(std::string_view data) noexcept override {
    event_piece(data);
    event_end();
  }
  void event_piece(std::string_view data) noexcept override {
    if (!started) sieve.begin();
    started = true;
    const char* const end = data.data() + data.size();
    const char* p = sieve.feed(data.data(), end);
    while (p != end && usage::is_json_space(*p)) ++p;
    if (p != end && sieve.whole()) more_follows = true;
  }
  void event_end() noexcept override {
    std::size_t end = lines.consumed();
    if (held.size() + (end - begin) > kMostHeldBytes || !is_usage_chunk()) {
      pass_until(end);
    } else {
      held.clear();
      removed = true;
      if (bytes[end - 1] == '\r') {  // the line's end may have a second half
        if (end < bytes.size() && bytes[end] == '\n') end += 1;
        swallow_lf = end == bytes.size() && bytes[end - 1] == '\r';
      }
      begin = end;
    }
    started = more_follows = passing = false;
  }
  void empty_line() noexcept override { pass_until(lines.consumed()); }

  [[nodiscard]] bool is_usage_chunk() const noexcept {
    return started && !passing && sieve.whole() && !more_follows && event.has_choices() && event.choices().empty() &&
           event.usage_object() && !event.error();
  }
  void pass_until(std::size_t end) {
    out->append(held).append(bytes.substr(begin, end - begin));
    held.clear();
    begin = end;
  }
  /// What is left of a piece belongs to an event that is not over.
  void hold(std::string_view rest) {
    const bool cannot_be = started && (sieve.failed() || !event.choices().empty());
    if (passing || cannot_be || held.size() + rest.size() > kMostHeldBytes) {
      passing = started;
      out->append(held).append(rest);
      held.clear();
      return;
    }
    held.append(rest);
  }

  usage::AnswerEvent event;
  usage::JsonSieve sieve{event};
  usage::SseLines lines;
  Mode mode = Mode::unknown;
  std::string* out = nullptr;  // of the present call
  std::string_view bytes;      // likewise
  std::size_t begin = 0;       // of what of them has not been passed
  std::string held;
  bool started = false;       // the event has data
  bool more_follows = false;  // behind its object
  bool passing = false;       // its beginning has been passed on
  bool swallow_lf = false;
  bool removed = false;
};

UsageChunkFilter::UsageChunkFilter() : impl_(std::make_unique<Impl>()) {}
UsageChunkFilter::~UsageChunkFilter() = default;
UsageChunkFilter::UsageChunkFilter(UsageChunkFilter&&) noexcept = default;
UsageChunkFilter& UsageChunkFilter::operator=(UsageChunkFilter&&) noexcept = default;

void UsageChunkFilter::feed(std::string_view bytes, std::string& out) { impl_->feed(bytes, out); }
void UsageChunkFilter::finish(std::string& out) { impl_->finish(out); }
bool UsageChunkFilter::removed() const noexcept { return impl_->removed; }
void UsageChunkFilter::reset() noexcept {
  Impl& it = *impl_;
  it.lines.reset();
  it.mode = Impl::Mode::unknown;
  it.held.clear();
  it.started = it.more_follows = it.passing = it.swallow_lf = it.removed = false;
}

}  // namespace warmroute
