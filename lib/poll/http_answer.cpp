#include "poll/http_answer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace warmroute::poll {
namespace {

constexpr std::size_t kMaxHead = std::size_t{64} << 10;  // status line, fields and trailers

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}
// Calls act(word) for each member of a comma list.
template <class Act>
void each_word(std::string_view list, Act&& act) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    act(trimmed(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}
// Bytes of a stranger go into a message that is UTF-8 in one line.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 40));
  for (char& c : out) c = c >= 0x20 && c < 0x7F ? c : '?';
  return out;
}

}  // namespace

void HttpAnswer::begin() {
  phase_ = Phase::status;
  began_ = keep_alive_ = chunked_ = fresh_line_ = false;
  status_ = 0;
  head_bytes_ = 0;
  left_ = 0;
  length_.reset();
  reason_.clear();
  line_.clear();
  body_.clear();
  fault_.clear();
}

void HttpAnswer::fail(std::string why) {
  phase_ = Phase::failed;
  keep_alive_ = false;
  fault_ = std::move(why);
}

HttpAnswer::State HttpAnswer::state() const noexcept {
  return phase_ == Phase::done ? State::done : phase_ == Phase::failed ? State::failed : State::more;
}

HttpAnswer::State HttpAnswer::feed(std::string_view bytes) {
  began_ = began_ || !bytes.empty();
  while (!bytes.empty() && state() == State::more) {
    if (phase_ == Phase::sized || phase_ == Phase::to_end || phase_ == Phase::chunk) take_body(bytes);
    else if (take_line(bytes)) on_line();
  }
  if (!bytes.empty())
    keep_alive_ = false;  // nobody asked for more: whatever it is, it is no answer to the next request
  return state();
}

HttpAnswer::State HttpAnswer::end() {
  if (phase_ == Phase::to_end) {
    phase_ = Phase::done;
  } else if (phase_ == Phase::sized) {
    fail("the connection ended after " + std::to_string(body_.size()) + " of " + std::to_string(*length_) +
         " bytes of the page");
  } else if (phase_ == Phase::status || phase_ == Phase::head) {
    fail(began_ ? "the connection ended within the head of the answer" : "the connection ended before an answer");
  } else if (state() == State::more) {
    fail("the connection ended within the chunks of the page, after " + std::to_string(body_.size()) + " bytes");
  }
  keep_alive_ = false;
  return state();
}

bool HttpAnswer::take_line(std::string_view& bytes) {
  if (std::exchange(fresh_line_, false)) line_.clear();
  const std::size_t end = bytes.find('\n');
  const std::size_t size = end == std::string_view::npos ? bytes.size() : end + 1;
  head_bytes_ += size;
  if (head_bytes_ > kMaxHead) {
    fail("the head of the answer has more than 64 KiB");
    return false;
  }
  line_.append(bytes.substr(0, end == std::string_view::npos ? size : end));
  bytes.remove_prefix(size);
  if (end == std::string_view::npos) {
    // Something else than HTTP is said at once, not at the end of its first line.
    const std::string_view seen = std::string_view(line_).substr(0, 5);
    if (phase_ == Phase::status && std::string_view("HTTP/").substr(0, seen.size()) != seen) read_status();
    return false;
  }
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  fresh_line_ = true;
  return true;
}

void HttpAnswer::take_body(std::string_view& bytes) {
  const std::size_t size =
      phase_ == Phase::to_end ? bytes.size() : static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  if (size > max_body_ - body_.size()) {
    return fail("the page has more than " + std::to_string(max_body_) + " bytes");
  }
  body_.append(bytes.substr(0, size));
  bytes.remove_prefix(size);
  if (phase_ == Phase::to_end) return;
  left_ -= size;
  if (left_ == 0) phase_ = phase_ == Phase::sized ? Phase::done : Phase::chunk_end;
}

void HttpAnswer::on_line() {
  switch (phase_) {
    case Phase::status: return read_status();
    case Phase::head: return line_.empty() ? begin_body() : read_field();
    case Phase::chunk_size: return read_chunk_size();
    case Phase::chunk_end:
      if (!line_.empty()) return fail("a chunk of the page is longer than it says");
      phase_ = Phase::chunk_size;
      head_bytes_ = 0;
      return;
    case Phase::trailer:
      if (line_.empty()) phase_ = Phase::done;
      return;
    case Phase::sized:
    case Phase::to_end:
    case Phase::chunk:
    case Phase::done:
    case Phase::failed: return;
  }
}

void HttpAnswer::read_status() {
  const std::string_view line = line_;
  const bool http = line.size() >= 12 && line.starts_with("HTTP/1.") && line[8] == ' ';
  const auto digit = [&](std::size_t i) { return line[i] >= '0' && line[i] <= '9'; };
  if (!http || !digit(7) || !digit(9) || !digit(10) || !digit(11) || (line.size() > 12 && line[12] != ' ')) {
    return fail("the answer is no HTTP/1.1: it begins with '" + shown(line) + "'");
  }
  status_ = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  reason_ = shown(trimmed(line.substr(12)));
  keep_alive_ = line[7] != '0';
  phase_ = Phase::head;
}

void HttpAnswer::read_field() {
  const std::string_view line = line_;
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return fail("the head of the answer has a line without ':'");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_word(name, "connection")) {
    each_word(value, [this](std::string_view word) {
      if (same_word(word, "close")) keep_alive_ = false;
      if (same_word(word, "keep-alive")) keep_alive_ = true;
    });
  } else if (same_word(name, "content-length")) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    const bool whole = error == std::errc{} && end == value.data() + value.size();
    if (!whole || (length_ && *length_ != length)) return fail("the answer has a bad Content-Length");
    length_ = length;
  } else if (same_word(name, "transfer-encoding")) {
    if (!same_word(value, "chunked")) return fail("the answer comes in an unknown transfer coding: " + shown(value));
    chunked_ = true;
  } else if (same_word(name, "content-encoding") && !same_word(value, "identity")) {
    return fail("the page is compressed (" + shown(value) + "), though nobody asked for that");
  }
}

void HttpAnswer::begin_body() {
  if (status_ >= 100 && status_ < 200 && status_ != 101) {  // interim: the answer follows
    phase_ = Phase::status;
    length_.reset();
    chunked_ = false;
    return;
  }
  if (status_ != 200) {
    return fail("HTTP status " + std::to_string(status_) + (reason_.empty() ? "" : " " + reason_));
  }
  if (chunked_) {
    if (length_) keep_alive_ = false;  // who says both is not to be believed about where the answer ends
    phase_ = Phase::chunk_size;
    head_bytes_ = 0;
    return;
  }
  if (!length_) {
    keep_alive_ = false;
    phase_ = Phase::to_end;
    return;
  }
  if (*length_ > max_body_) {
    return fail("the page has " + std::to_string(*length_) + " bytes, more than " + std::to_string(max_body_));
  }
  left_ = *length_;
  phase_ = left_ == 0 ? Phase::done : Phase::sized;
}

void HttpAnswer::read_chunk_size() {
  const std::string_view text = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), left_, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return fail("a chunk of the page has a bad size");
  if (left_ > max_body_ - body_.size()) return fail("the page has more than " + std::to_string(max_body_) + " bytes");
  phase_ = left_ == 0 ? Phase::trailer : Phase::chunk;
}

}  // namespace warmroute::poll
