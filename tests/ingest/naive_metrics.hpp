// A slow, obvious reader of Prometheus text, to stand beside the fast one: lines are cut first, every rule is one
// sentence.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <simdjson.h>

namespace warmroute::test {

struct NaiveSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // values as written
  std::string number;

  friend bool operator==(const NaiveSample&, const NaiveSample&) = default;
};

struct NaivePage {
  std::vector<NaiveSample> samples;
  std::size_t malformed = 0;
};

class NaiveLine {
 public:
  explicit NaiveLine(std::string text) : text_(std::move(text)) {}

  std::optional<NaiveSample> sample() {
    NaiveSample out;
    blanks();
    while (name_char(peek(), out.name.empty(), true)) out.name += take();
    const bool apart = blanks();
    if (peek() == '{') {
      if (!braces(out.name, out.labels)) return std::nullopt;
      blanks();
    } else if (!apart) {
      return std::nullopt;
    }
    if (out.name.empty() || !number(out.number) || !rest()) return std::nullopt;
    return out;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char take() { return text_[at_++]; }
  bool ended() const { return at_ >= text_.size(); }
  bool blanks() {
    const std::size_t before = at_;
    while (peek() == ' ' || peek() == '\t') ++at_;
    return at_ != before;
  }
  static bool name_char(char c, bool first, bool colon) {
    if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (colon && c == ':')) return true;
    return !first && c >= '0' && c <= '9';
  }
  bool string(std::string& out) {
    if (peek() != '"') return false;
    for (++at_; !ended(); ++at_) {
      if (peek() == '"') {
        ++at_;
        return true;
      }
      out += peek();
      if (peek() != '\\') continue;
      ++at_;
      if (ended() || (peek() != '\\' && peek() != '"' && peek() != 'n')) return false;
      out += peek();
    }
    return false;
  }
  // The label set, and a quoted name if there was none before.
  bool braces(std::string& name, std::vector<std::pair<std::string, std::string>>& labels) {
    std::map<std::string, int> given;
    take();
    blanks();
    while (peek() != '}') {
      std::string key;
      const bool quoted = peek() == '"';
      if (quoted && !string(key)) return false;
      while (!quoted && name_char(peek(), key.empty(), false)) key += take();
      blanks();
      if (key.empty()) return false;
      if (peek() == '=') {
        take();
        blanks();
        std::string value;
        if (!string(value) || given[key]++ != 0) return false;
        labels.emplace_back(key, value);
        blanks();
      } else {
        if (!quoted || !name.empty()) return false;
        name = key;
      }
      if (peek() == ',') {
        take();
        blanks();
      } else if (peek() != '}') {
        return false;
      }
    }
    take();
    return true;
  }
  bool digits(std::string& out) {
    const std::size_t before = out.size();
    while (peek() >= '0' && peek() <= '9') out += take();
    return out.size() != before;
  }
  bool number(std::string& out) {
    if (peek() == '+' || peek() == '-') out += take();
    for (const std::string word : {"infinity", "inf", "nan"}) {
      std::string here = text_.substr(at_, word.size());
      for (char& c : here) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (here != word) continue;
      out += text_.substr(at_, word.size());
      at_ += word.size();
      return true;
    }
    bool any = digits(out);
    if (peek() == '.') {
      out += take();
      any = digits(out) || any;
    }
    if (!any) return false;
    if (peek() != 'e' && peek() != 'E') return true;
    out += take();
    if (peek() == '+' || peek() == '-') out += take();
    return digits(out);
  }
  // Behind the number: [timestamp] [# {labels} number [timestamp]].
  bool rest() {
    bool apart = blanks();
    if (ended()) return true;
    std::string ignored;
    if (peek() != '#') {
      if (!apart || !number(ignored)) return false;
      apart = blanks();
      if (ended()) return true;
    }
    if (peek() != '#' || !apart) return false;
    take();
    blanks();
    std::string no_name;
    std::vector<std::pair<std::string, std::string>> labels;
    if (peek() != '{' || !braces(no_name, labels) || !no_name.empty()) return false;
    blanks();
    if (!number(ignored)) return false;
    if (blanks() && !ended() && !number(ignored)) return false;
    blanks();
    return ended();
  }

  std::string text_;
  std::size_t at_ = 0;
};

inline NaivePage naive_page(std::string page) {
  NaivePage out;
  if (page.substr(0, 3) == "\xEF\xBB\xBF") page.erase(0, 3);
  for (std::size_t begin = 0; begin < page.size();) {
    const std::size_t end = std::min(page.find('\n', begin), page.size());
    std::string line = page.substr(begin, end - begin);
    begin = end + 1;
    if (line.find('\0') != std::string::npos || !simdjson::validate_utf8(line)) {
      ++out.malformed;
      continue;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line[first] == '#') {
      if (line.substr(first) == "# EOF") break;
      continue;
    }
    if (auto sample = NaiveLine(line).sample()) out.samples.push_back(*sample);
    else ++out.malformed;
  }
  return out;
}

}  // namespace warmroute::test
