// Files of the books and of control. Private to lib.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

namespace warmroute::usage {

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool ok() const noexcept { return fd_ >= 0; }
  // returns: false: the system says that it could not write what was written before.
  bool close() noexcept {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

// `write(bytes)`: as ::write. returns: false: with errno; a part may be there.
template <class Write>
bool write_whole(std::string_view bytes, const Write& write) {
  while (!bytes.empty()) {
    const ssize_t n = write(bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}
inline bool write_all(int fd, std::string_view bytes) {
  return write_whole(bytes, [fd](std::string_view left) { return ::write(fd, left.data(), left.size()); });
}
inline bool write_all_at(int fd, std::string_view bytes, std::uint64_t offset) {
  const std::uint64_t end = offset + bytes.size();
  return write_whole(bytes, [fd, end](std::string_view left) {
    return ::pwrite(fd, left.data(), left.size(), static_cast<off_t>(end - left.size()));
  });
}

}  // namespace warmroute::usage
