// What an event looked like, so that the next ones that look the same need not be read: events with content differ in a
// text and perhaps a number that nobody asked for. Such values are holes; everything between them must be equal.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "usage/json_scan.hpp"

namespace warmroute::usage {

class EventShape {
 public:
  void forget() noexcept { size_ = 0; }

  // ---- learning: the sieve names the holes while it reads
  void begin(std::string_view event) noexcept {
    source_ = event.data();
    hole_count_ = 0;
    usable_ = event.size() <= kMostBytes;
    size_ = 0;
  }
  void string_hole(const char* begin, const char* end) noexcept { hole(begin, end, true); }
  void number_hole(const char* begin, const char* end) noexcept { hole(begin, end, false); }
  /// The event was whole, and all it changed is now known. `revision` counts changes.
  void learn(std::string_view event, std::uint64_t revision, bool output) noexcept {
    if (!usable_) return;
    std::memcpy(text_.data(), event.data(), event.size());
    size_ = static_cast<std::uint16_t>(event.size());
    revision_ = revision;
    output_ = output;
  }

  /// returns: whether reading `event` would say the same as the event of this shape did, and nothing else was said since.
  [[nodiscard]] bool matches(std::string_view event, std::uint64_t revision) const noexcept;
  [[nodiscard]] bool output() const noexcept { return output_; }

 private:
  struct Hole {
    std::uint16_t begin = 0;
    std::uint16_t end = 0;
    bool string = false;
  };
  static constexpr std::size_t kMostBytes = 1'024;
  static constexpr std::size_t kMostHoles = 24;

  void hole(const char* begin, const char* end, bool string) noexcept {
    if (!usable_) return;
    if (hole_count_ == kMostHoles) {
      usable_ = false;
      return;
    }
    holes_[hole_count_++] = {static_cast<std::uint16_t>(begin - source_), static_cast<std::uint16_t>(end - source_),
                             string};
  }

  const char* source_ = nullptr;
  std::uint64_t revision_ = 0;
  std::uint16_t size_ = 0;
  std::uint8_t hole_count_ = 0;
  bool usable_ = false;
  bool output_ = false;
  std::array<Hole, kMostHoles> holes_{};
  std::array<char, kMostBytes> text_;
};

}  // namespace warmroute::usage
