#include "control/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "warmroute/control/snapshot.hpp"

namespace warmroute {

Status replace_file(const std::string& path, std::string_view bytes, unsigned mode) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  // One name per process: two writers do not write into one file, and what a killed one left is used again.
  const std::string beside = path + ".new." + std::to_string(getpid());
  ::unlink(beside.c_str());
  control::Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.ok()) return control::file_error("make", beside);
  const bool written = fchmod(file.get(), mode) == 0 && control::write_all(file.get(), bytes) &&
                       ::fsync(file.get()) == 0 && file.close();
  if (!written || ::rename(beside.c_str(), path.c_str()) != 0) {
    auto error = control::file_error("write", path);
    ::unlink(beside.c_str());
    return error;
  }
  // Names live in the folder: without this the old file may be back after a power loss.
  const control::Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok() || ::fsync(directory.get()) != 0) return control::file_error("sync", folder);
  return {};
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const control::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return control::file_error("open", path, errno == ENOENT ? Code::not_found : Code::io);
  struct stat about {};
  if (fstat(file.get(), &about) != 0) return control::file_error("read", path);
  std::string bytes;
  if (about.st_size > 0) bytes.reserve(std::min(static_cast<std::size_t>(about.st_size), max_bytes) + 1);
  for (;;) {
    const std::size_t have = bytes.size();
    const std::size_t piece = std::max<std::size_t>(bytes.capacity() - have, 65'536);
    bytes.resize(have + piece);
    const ssize_t n = ::read(file.get(), bytes.data() + have, piece);
    if (n < 0 && errno != EINTR) return control::file_error("read", path);
    bytes.resize(have + static_cast<std::size_t>(n < 0 ? 0 : n));
    if (bytes.size() > max_bytes)
      return Error{Code::too_large, path + " has more than " + std::to_string(max_bytes) + " bytes", max_bytes};
    if (n == 0) return bytes;
  }
}

}  // namespace warmroute
