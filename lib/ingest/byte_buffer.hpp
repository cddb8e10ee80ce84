// Growing bytes that are not cleared before use and are wiped before they are given back: scratch for prompt text.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace warmroute::ingest {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer() { wipe(); }

  /// Room for `bytes` more behind end(). Pointers into the buffer are lost when it grows.
  void reserve_more(std::size_t bytes) {
    if (capacity_ - size_ < bytes) grow(bytes);
  }
  [[nodiscard]] const char* data() const noexcept { return data_.get(); }
  [[nodiscard]] char* end() noexcept { return data_.get() + size_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data_.get(), size_}; }
  [[nodiscard]] std::string_view from(std::size_t offset) const noexcept {
    return {data_.get() + offset, size_ - offset};
  }

  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    reserve_more(bytes.size());
    std::memcpy(end(), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void append(char byte) {
    reserve_more(1);
    data_[size_++] = byte;
  }
  /// Bytes up to `end` have been written behind end().
  void set_end(const char* new_end) noexcept { size_ = static_cast<std::size_t>(new_end - data_.get()); }
  /// Forgets what lies behind `size`; it is wiped with the rest.
  void truncate(std::size_t size) noexcept {
    high_ = std::max(high_, size_);
    size_ = size;
  }

  /// Everything that was ever written since the last wipe becomes zero; `slack` bytes behind it too, since vector
  /// stores overrun.
  void wipe(std::size_t slack = 64) noexcept {
    const std::size_t used = std::min(std::max(high_, size_) + slack, capacity_);
    if (used != 0) std::memset(data_.get(), 0, used);
    // The compiler must not drop the stores because the memory is about to be freed.
    __asm__ volatile("" : : "r"(data_.get()) : "memory");
    size_ = 0;
    high_ = 0;
  }
  /// wipe(), and the memory goes back if it is more than `keep` bytes.
  void reset(std::size_t keep) noexcept {
    wipe();
    if (capacity_ > keep) {
      data_.reset();
      capacity_ = 0;
    }
  }

 private:
  void grow(std::size_t bytes);

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t high_ = 0;  // the largest size before a truncate
};

}  // namespace warmroute::ingest
