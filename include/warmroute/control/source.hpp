/// Where snapshots come from: a file that somebody replaces. A thread of its own looks at it ten times a second and hands its
/// bytes to a callback when they are others; control/applier.hpp has callbacks that fit.
/// Invariants: serving never waits for it; a missing, half-written or refused file is said and tried again, and what was
/// handed over before stays in force; bytes that were accepted are not handed over twice in a row.
/// Does not: parse or judge what it reads, keep a copy, watch more than one path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "warmroute/observe/log.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

struct FileSourceOptions {
  std::string path;
  Nanos interval = milliseconds(100);  ///< between two looks: 1 ms to 1 min
  Nanos retry_to = seconds(5);  ///< an unchanged file that was refused is handed over again, ever later, up to this
  std::size_t max_bytes = std::size_t{64} << 20;
  /// On the source's thread: the file's bytes. An error is kept in status(), and the file tried again.
  Status (*on_bytes)(void* user, std::string_view bytes, UsageTime now) = nullptr;
  /// On the source's thread, at every look at which the file is still what was accepted last: control is there. May be null.
  void (*on_same)(void* user, UsageTime now) = nullptr;
  void* user = nullptr;  ///< lifetime: as long as the source
  /// What time it is, for the callbacks. Null: the system's monotonic and real-time clocks.
  UsageTime (*clock)(void* clock_user) = nullptr;
  void* clock_user = nullptr;
  LogSink log{};  ///< on the source's thread: when the file is refused or missing, and when it is accepted again
};

struct FileSourceStatus {
  std::uint64_t looks = 0;
  std::uint64_t reads = 0;     ///< of the whole file
  std::uint64_t accepted = 0;  ///< times that on_bytes took it
  std::uint64_t refused = 0;   ///< times that on_bytes or reading failed
  bool missing = false;        ///< at the last look
  bool good = false;           ///< at the last look, the file was what had been accepted
  std::string last_error;      ///< of the last failure; stays
};

/// threads: any for every call. The end of the object stops the thread, after a callback that is running.
class FileSourceThread {
 public:
  /// errors: invalid_argument (every fault named), io (no thread). Does not wait for the file.
  static Result<FileSourceThread> start(FileSourceOptions options);
  ~FileSourceThread();
  FileSourceThread(FileSourceThread&&) noexcept;
  FileSourceThread& operator=(FileSourceThread&&) noexcept;

  /// Looks at once, and reads whatever the file's time and size say. returns: when that is done; not from a callback.
  void look_now();
  [[nodiscard]] FileSourceStatus status() const;

 private:
  struct Impl;
  explicit FileSourceThread(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
