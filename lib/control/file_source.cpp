// The thread that looks at a file. Polling costs one stat each 100 ms, and works on every file system.
#include "warmroute/control/source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "control/bell_thread.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute {
namespace control {
namespace {

using Steady = std::chrono::steady_clock;

// A file system's clock ticks in milliseconds, some in seconds: a file written twice within a tick looks the same. So it is
// read once more when this is over.
constexpr auto kSettles = std::chrono::seconds(2);

UsageTime system_time(void* /*user*/) {
  const auto nanos = [](auto since) { return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count(); };
  return {Nanos{nanos(Steady::now().time_since_epoch())},
          WallNanos{nanos(std::chrono::system_clock::now().time_since_epoch())}};
}

// What tells one version of a file from another, short of reading it.
using Look = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;

std::optional<Look> look_at(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return std::nullopt;
  return Look{s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec};
}

Status check(const FileSourceOptions& o) {
  std::string faults;
  const auto require = [&](bool fine, const char* what) {
    if (!fine) faults.append(faults.empty() ? "" : "; ").append(what);
  };
  require(!o.path.empty(), "path is empty");
  require(o.interval >= milliseconds(1) && o.interval <= seconds(60), "interval must lie in 1 ms .. 1 min");
  require(o.retry_to >= o.interval && o.retry_to <= seconds(3'600), "retry_to must lie in interval .. 1 h");
  require(o.on_bytes != nullptr, "on_bytes is null");
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "file source: " + faults, kNoOffset};
}

}  // namespace
}  // namespace control

struct FileSourceThread::Impl {
  explicit Impl(FileSourceOptions o) : options(std::move(o)) {}
  ~Impl() { work.stop(); }

  void run();
  void look(bool whatever);
  void read(const control::Look& seen);
  void failed(const std::string& why, bool missing);
  void accepted();
  [[nodiscard]] UsageTime now() const {
    return options.clock != nullptr ? options.clock(options.clock_user) : control::system_time(nullptr);
  }

  const FileSourceOptions options;
  control::BellThread work;  // its mutex: of what follows
  std::uint64_t asked = 0;   // looks that were asked for
  std::uint64_t done = 0;
  FileSourceStatus status;

  // the thread's own
  std::optional<control::Look> seen;  // when it was last read
  bool good = false;                  // it was accepted then
  bool hashed = false;
  std::uint64_t hash = 0;               // of the bytes that were accepted last
  control::Steady::time_point again{};  // a refused file is tried, an accepted one is read once more
  bool settled = false;
  control::Steady::duration pause{};
};

void FileSourceThread::Impl::failed(const std::string& why, bool missing) {
  good = false;
  bool first = false;
  {
    const std::lock_guard lock(work.mutex);
    first = status.good || status.last_error.empty() || status.missing != missing;
    status.good = false;
    status.missing = missing;
    status.last_error = why;
    if (!missing) ++status.refused;
  }
  if (first) options.log(LogLevel::warning, "control file " + options.path + ": " + why);
}

void FileSourceThread::Impl::accepted() {
  good = true;
  const std::lock_guard lock(work.mutex);
  status.good = true;
  status.missing = false;
}

void FileSourceThread::Impl::read(const control::Look& before) {
  const bool other = !seen || *seen != before;
  seen = before;
  const auto at = control::Steady::now();
  const auto least = std::chrono::nanoseconds(options.interval.value);
  const auto most = std::chrono::nanoseconds(options.retry_to.value);
  pause = other ? control::Steady::duration(least) : std::min<control::Steady::duration>(pause * 2, most);
  again = at + pause;
  const auto bytes = read_file(options.path, options.max_bytes);
  {
    const std::lock_guard lock(work.mutex);
    ++status.reads;
  }
  if (!bytes) return failed(bytes.error().message, bytes.code() == Code::not_found);
  const std::uint64_t is = XXH3_64bits(bytes->data(), bytes->size());
  if (hashed && is == hash) {  // touched, copied over by itself, or put back after something that was refused
    settled = !other;
    again = at + control::kSettles;
    return accepted();
  }
  if (const Status s = options.on_bytes(options.user, *bytes, now()); !s) return failed(s.error().message, false);
  hashed = true;
  hash = is;
  settled = false;
  again = control::Steady::now() + control::kSettles;
  {
    const std::lock_guard lock(work.mutex);
    ++status.accepted;
  }
  options.log(LogLevel::info, "control file " + options.path + ": taken");
  accepted();
}

void FileSourceThread::Impl::look(bool whatever) {
  const auto is = control::look_at(options.path);
  if (!is) {
    seen.reset();
    failed("the file is not there", true);
  } else if (whatever || !seen || *seen != *is || ((!good || !settled) && control::Steady::now() >= again)) {
    read(*is);
  }
  if (good && options.on_same != nullptr) options.on_same(options.user, now());
  const std::lock_guard lock(work.mutex);
  ++status.looks;
}

void FileSourceThread::Impl::run() {
  std::unique_lock lock(work.mutex);
  while (!work.stopping) {
    const std::uint64_t wanted = asked;
    const bool whatever = wanted != done;
    lock.unlock();
    look(whatever);
    lock.lock();
    done = wanted;
    work.bell.notify_all();
    work.bell.wait_for(lock, std::chrono::nanoseconds(options.interval.value),
                       [&] { return work.stopping || asked != done; });
  }
  done = asked;
  work.bell.notify_all();
}

FileSourceThread::FileSourceThread(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
FileSourceThread::~FileSourceThread() = default;
FileSourceThread::FileSourceThread(FileSourceThread&&) noexcept = default;
FileSourceThread& FileSourceThread::operator=(FileSourceThread&&) noexcept = default;

Result<FileSourceThread> FileSourceThread::start(FileSourceOptions options) {
  if (Status s = control::check(options); !s) return s.error();
  auto impl = std::make_unique<Impl>(std::move(options));
  if (Status s = impl->work.start("file source", [me = impl.get()] { me->run(); }); !s) return s.error();
  return FileSourceThread(std::move(impl));
}

void FileSourceThread::look_now() {
  std::unique_lock lock(impl_->work.mutex);
  const std::uint64_t mine = ++impl_->asked;
  impl_->work.bell.notify_all();
  impl_->work.bell.wait(lock, [&] { return impl_->done >= mine; });
}

FileSourceStatus FileSourceThread::status() const {
  const std::lock_guard lock(impl_->work.mutex);
  return impl_->status;
}

}  // namespace warmroute
