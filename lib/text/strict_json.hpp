// Reading JSON objects strictly: every fault is listed with its path, and reading goes on. Private to lib.
#pragma once

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/types.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute::text {

namespace dom = simdjson::dom;

// Where we are. On the stack: a path is spelled out for a fault only.
struct Path {
  const Path* up = nullptr;
  std::string_view name{};
  std::ptrdiff_t index = -1;  // of an array

  [[nodiscard]] std::string text() const;
};

struct Fault {
  std::string path;
  std::string what;
};

class Faults {
 public:
  explicit Faults(std::size_t most) : most_(most) {}
  void add(const Path& at, std::string_view what);
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::string text() const;
  // Those that are listed.
  [[nodiscard]] const std::vector<Fault>& list() const noexcept { return list_; }

 private:
  std::vector<Fault> list_;
  std::size_t count_ = 0;
  const std::size_t most_;
};

// The members of one object, each at most once, all of them known.
class Members {
 public:
  static constexpr std::size_t kMost = 16;

  // `names`: lifetime: as long as this.
  Members(Faults& faults, const Path& at, dom::element object, std::span<const std::string_view> names);

  // returns: nullptr: it is absent.
  [[nodiscard]] const dom::element* find(std::string_view name) const;
  // The same; a fault when it is absent.
  const dom::element* need(std::string_view name);
  [[nodiscard]] Path path(std::string_view name) const { return {&at_, name}; }
  void fault(std::string_view name, std::string_view what) { faults_.add(path(name), what); }
  [[nodiscard]] Faults& faults() const { return faults_; }

  // Absent members leave `out` alone. Wrong ones are faults.
  void text(std::string_view name, std::string& out, std::size_t most_bytes, bool may_be_empty = false);
  void flag(std::string_view name, bool& out);
  void integer(std::string_view name, std::int64_t& out, std::int64_t low, std::int64_t high);
  void unsigned_integer(std::string_view name, std::uint64_t& out);
  void billionths(std::string_view name, std::int64_t& out);  // a decimal, exact to nine places
  void time(std::string_view name, WallNanos& out);           // RFC 3339
  void local_time(std::string_view name, std::int64_t& out);  // without a zone, in seconds since 1970
  void hex32(std::string_view name, std::array<std::uint8_t, 32>& out);
  template <class Enum, std::size_t N>
  bool choice(std::string_view name, const std::array<std::string_view, N>& words, Enum& out) {
    std::size_t index = 0;
    if (!choose(name, words, index)) return false;
    out = static_cast<Enum>(index);
    return true;
  }
  // returns: nullopt: absent, or no array, which is a fault.
  std::optional<dom::array> array(std::string_view name);

 private:
  bool choose(std::string_view name, std::span<const std::string_view> words, std::size_t& index);

  Faults& faults_;
  const Path& at_;
  const std::span<const std::string_view> names_;
  std::array<dom::element, kMost> values_;
  std::array<bool, kMost> there_{};
};

// 1e-9 units as a decimal, and back. Both are exact.
std::string billionths_text(std::int64_t value);
std::optional<std::int64_t> billionths_of(std::string_view text);
std::string time_text(WallNanos time);
std::string local_time_text(std::int64_t seconds);
std::string hex_text(std::span<const std::uint8_t> bytes);
bool hex_bytes(std::string_view text, std::span<std::uint8_t> out);

// A number that JSON's readers keep exactly: beyond it, and with a fraction, it is written as a string.
inline constexpr std::int64_t kMostExactBillionths = std::int64_t{1} << 50;

}  // namespace warmroute::text
