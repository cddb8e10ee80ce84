// Writing a journal. Appends happen under one lock; asking the disk happens under another, so that one fdatasync serves
// all that appended before it.
#include "warmroute/usage/journal.hpp"

#include <absl/container/flat_hash_map.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "usage/file.hpp"
#include "usage/journal_record.hpp"

namespace warmroute {
namespace usage {

struct JournalSegment {
  std::uint64_t bytes = 0;
  std::uint64_t open = 0;  // begins in it that have no end
};

// An event that began, and where.
struct JournalOpen {
  std::uint64_t segment = 0;
  bool held = false;    // its end is in memory
  std::string payload;  // while a journal is opened
};

// What is not yet known to be on the disk.
struct HeldEnd {
  std::uint64_t number = 0;
  std::string record;
};

}  // namespace usage

namespace {

using usage::Descriptor;
using usage::JournalOpen;

Error journal_error(const std::string& what, const std::string& path) {
  return Error{Code::io, "journal: cannot " + what + " " + path + ": " + std::strerror(errno), kNoOffset};
}

Result<std::string> read_all(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!file.ok() || fstat(file.get(), &st) != 0) return journal_error("open", path);
  std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = read(file.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return journal_error("read", path);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// Names live in the directory: without this a new file may be gone after a power loss.
void sync_directory(const std::string& directory) {
  const Descriptor file(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.ok()) fsync(file.get());
}

}  // namespace

struct Journal::Impl {
  Impl(std::string dir, const JournalOptions& o) : directory(std::move(dir)), options(o) {}

  Status start();
  Status recover_segment(std::uint64_t n, bool last);
  Status scan(std::uint64_t n, std::string_view bytes, bool last);
  Status new_segment(std::uint64_t n);
  bool append(std::string_view record);
  Error append_error() const;
  Status finish(std::unique_lock<std::mutex>& lock, std::uint64_t number, JournalKind kind, const UsageEvent& event);
  void flush_held();
  void forget(std::uint64_t number);
  Status sync_to(std::unique_lock<std::mutex>& lock);
  Status after_append(std::unique_lock<std::mutex>& lock, bool force);
  void read_cursor();
  void set_cursor_back();
  Status write_cursor();

  const std::string directory;
  const JournalOptions options;
  std::unique_ptr<Descriptor> lock_file;
  mutable std::mutex mutex;
  std::mutex syncing;  // taken without `mutex`
  usage::JournalId id{};
  bool have_id = false;
  std::shared_ptr<Descriptor> file;
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t next_number = 1;
  std::uint64_t appended = 0;  // bytes, ever
  std::uint64_t synced = 0;    // of those, on the disk
  std::map<std::uint64_t, usage::JournalSegment> segments;
  absl::flat_hash_map<std::uint64_t, JournalOpen> open;
  std::deque<usage::HeldEnd> held;
  JournalCursor cursor;
  int append_errno = 0;  // of the append that failed last; 0: max_bytes
  std::string scratch;
  JournalStatistics stats;
};

Status Journal::Impl::start() {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return journal_error("make", directory);
  const std::string lock_path = directory + "/lock";
  lock_file = std::make_unique<Descriptor>(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_file->ok()) return journal_error("open", lock_path);
  if (flock(lock_file->get(), LOCK_EX | LOCK_NB) != 0)
    return Error{Code::already_exists, "journal: " + directory + " is open in another process", kNoOffset};
  const auto found = usage::list_segments(directory);
  if (!found) return found.error();
  for (const std::uint64_t n : *found) {
    if (Status s = recover_segment(n, n == found->back()); !s) return s;
  }
  read_cursor();
  if (!have_id && RAND_bytes(id.data(), static_cast<int>(id.size())) != 1)
    return Error{Code::internal, "journal: OpenSSL gives no random bytes", kNoOffset};
  if (segments.empty()) {
    // Numbers of segments are never used again, or a cursor would mean another place.
    if (Status s = new_segment(std::max<std::uint64_t>({1, cursor.segment, found->empty() ? 1 : found->back()})); !s)
      return s;
  } else {
    segment = segments.rbegin()->first;
    offset = segments.rbegin()->second.bytes;
    const std::string path = usage::segment_path(directory, segment);
    file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file->ok()) return journal_error("open", path);
    if (ftruncate(file->get(), static_cast<off_t>(offset)) != 0) return journal_error("cut", path);
  }
  set_cursor_back();
  std::map<std::uint64_t, std::string> left_open;
  for (auto& [number, event] : open) left_open.emplace(number, std::move(event.payload));
  for (const auto& [number, payload] : left_open) {
    std::string record;
    usage::append_record_as(record, JournalKind::incomplete, payload);
    held.push_back({number, std::move(record)});
    ++stats.recovered;
  }
  flush_held();
  return {};
}

Status Journal::Impl::recover_segment(std::uint64_t n, bool last) {
  const std::string path = usage::segment_path(directory, n);
  const auto bytes = read_all(path);
  if (!bytes) return bytes.error();
  usage::SegmentHead head;
  if (!usage::read_segment_header(*bytes, head) || head.segment != n) {
    // The process ended while it made the file: nothing was in it.
    if (last && bytes->size() < usage::kSegmentHeader) {
      stats.torn_bytes += bytes->size();
      return unlink(path.c_str()) == 0 ? Status{} : Status{journal_error("remove", path)};
    }
    return Error{Code::malformed, "journal: " + path + " is no segment of this version", 0};
  }
  if (have_id && head.id != id) return Error{Code::malformed, "journal: " + path + " is of another journal", 16};
  id = head.id;
  have_id = true;
  next_number = std::max(next_number, head.next_number);
  return scan(n, *bytes, last);
}

Status Journal::Impl::scan(std::uint64_t n, std::string_view bytes, bool last) {
  usage::JournalSegment& here = segments[n];
  std::size_t at = usage::kSegmentHeader;
  for (;;) {
    const std::string_view payload = usage::whole_payload(bytes.substr(at));
    JournalKind kind{};
    std::uint64_t number = 0;
    if (payload.empty() || !usage::read_head(payload, kind, number)) break;
    at += usage::kRecordHeader + payload.size();
    if (kind == JournalKind::begin) {
      next_number = std::max(next_number, number + 1);
      open[number] = {n, false, std::string(payload)};
      ++here.open;
    } else {
      forget(number);
    }
  }
  here.bytes = at;
  stats.bytes += at;
  if (at != bytes.size() && last) stats.torn_bytes += bytes.size() - at;
  if (at != bytes.size() && !last) ++stats.damaged;
  return {};
}

void Journal::Impl::forget(std::uint64_t number) {
  const auto it = open.find(number);
  if (it == open.end()) return;
  --segments[it->second.segment].open;
  open.erase(it);
}

Status Journal::Impl::new_segment(std::uint64_t n) {
  const std::string path = usage::segment_path(directory, n);
  auto next = std::make_shared<Descriptor>(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!next->ok()) return journal_error("make", path);
  if (!usage::write_all(next->get(), usage::segment_header(id, n, next_number))) {
    const Error e = journal_error("write", path);
    unlink(path.c_str());
    return e;
  }
  if (file && options.sync != JournalSync::none) fdatasync(file->get());
  if (options.sync != JournalSync::none) sync_directory(directory);
  file = std::move(next);
  segment = n;
  offset = usage::kSegmentHeader;
  segments[n].bytes = offset;
  stats.bytes += offset;
  return {};
}

// returns: false: the disk is full or fails; nothing is left of the record. threads: under `mutex`.
bool Journal::Impl::append(std::string_view record) {
  const auto fails = [this](int why) {
    append_errno = why;
    stats.full = true;
    return false;
  };
  if (options.max_bytes != 0 && stats.bytes + record.size() > options.max_bytes) return fails(0);
  if (offset + record.size() > options.segment_bytes && offset > usage::kSegmentHeader) {
    if (!new_segment(segment + 1)) return fails(errno);
  }
  if (!usage::write_all_at(file->get(), record, offset)) {
    const int why = errno;
    // A part may be there. Cut it, or the next record would stand behind rubbish; where even that fails, in a new segment.
    if (ftruncate(file->get(), static_cast<off_t>(offset)) != 0) static_cast<void>(new_segment(segment + 1));
    return fails(why);
  }
  offset += record.size();
  segments[segment].bytes = offset;
  stats.bytes += record.size();
  appended += record.size();
  stats.full = false;
  return true;
}

Error Journal::Impl::append_error() const {
  const std::string why = append_errno == 0 ? "its max_bytes are reached" : std::strerror(append_errno);
  return Error{Code::io, "journal: cannot append to " + directory + ": " + why, kNoOffset};
}

void Journal::Impl::flush_held() {
  while (!held.empty() && append(held.front().record)) {
    forget(held.front().number);
    held.pop_front();
  }
}

// Until all that is appended now is on the disk; one call serves those that wait. Gives `lock` back and takes it again.
Status Journal::Impl::sync_to(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t wanted = appended;
  lock.unlock();
  const std::lock_guard one_at_a_time(syncing);
  lock.lock();
  if (synced >= wanted) return {};
  const std::uint64_t covers = appended;
  const std::shared_ptr<Descriptor> mine = file;
  lock.unlock();
  const bool ok = fdatasync(mine->get()) == 0;
  lock.lock();
  ++stats.syncs;
  if (!ok) {
    stats.full = true;
    return journal_error("sync", directory);
  }
  synced = std::max(synced, covers);
  return {};
}

Status Journal::Impl::after_append(std::unique_lock<std::mutex>& lock, bool force) {
  const bool due = options.sync == JournalSync::each ||
                   (options.sync == JournalSync::batched && appended - synced >= options.sync_bytes);
  return due || force ? sync_to(lock) : Status{};
}

void Journal::Impl::read_cursor() {
  const auto text = read_all(directory + "/cursor");
  if (!text) return;
  JournalCursor read;
  const char* const end = text->data() + text->size();
  const auto first = std::from_chars(text->data(), end, read.segment);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ' ') return;
  const auto second = std::from_chars(first.ptr + 1, end, read.offset);
  if (second.ec == std::errc{} && std::string_view(second.ptr, end) == " end\n") cursor = read;
}

// A machine that lost power keeps the cursor and may lose records before it: read on from there, everything that follows
// would be the middle of a record, and nothing would be handed over until the next segment. What was lost had numbers that
// a consumer has seen; each was in a record of more than one byte.
void Journal::Impl::set_cursor_back() {
  const JournalCursor end{segment, offset};
  if (cursor <= end) return;
  next_number += cursor.segment == segment ? cursor.offset - offset : options.segment_bytes;
  cursor = end;
}

// A new file in the place of the old one: there is always a whole one.
Status Journal::Impl::write_cursor() {
  const std::string path = directory + "/cursor";
  const std::string next = path + ".next";
  const std::string text = std::to_string(cursor.segment) + " " + std::to_string(cursor.offset) + " end\n";
  {
    const Descriptor out(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!out.ok() || !usage::write_all(out.get(), text)) return journal_error("write", next);
    if (options.sync != JournalSync::none && fdatasync(out.get()) != 0) return journal_error("sync", next);
  }
  if (std::rename(next.c_str(), path.c_str()) != 0) return journal_error("rename", next);
  if (options.sync != JournalSync::none) sync_directory(directory);
  return {};
}

Journal::Journal(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() {
  if (impl_ && impl_->file) static_cast<void>(sync());
}

Result<Journal> Journal::open(const std::string& directory, const JournalOptions& options) {
  auto impl = std::make_unique<Impl>(directory, options);
  if (Status s = impl->start(); !s) return s.error();
  return Journal{std::move(impl)};
}

Result<std::uint64_t> Journal::begin(const UsageEvent& estimate) {
  Impl& j = *impl_;
  std::unique_lock lock(j.mutex);
  const std::uint64_t number = j.next_number;
  j.scratch.clear();
  if (!usage::append_record(j.scratch, JournalKind::begin, number, estimate))
    return Error{Code::invalid_argument, "journal: an event holds 64 KiB of text at most", kNoOffset};
  j.flush_held();
  if (!j.append(j.scratch)) {
    if (j.options.on_full == JournalFull::refuse) return j.append_error();
    ++j.stats.unbilled;
    return std::uint64_t{0};
  }
  ++j.next_number;
  ++j.stats.begins;
  ++j.segments[j.segment].open;
  j.open[number] = {j.segment, false, {}};
  Status synced = j.after_append(lock, false);
  if (synced || j.options.on_full == JournalFull::serve_unbilled) return number;
  static_cast<void>(j.finish(lock, number, JournalKind::withdrawn, {}));  // it will not be served
  return synced.error();
}

// threads: under `lock`, which syncing gives back for a while.
Status Journal::Impl::finish(std::unique_lock<std::mutex>& lock, std::uint64_t number, JournalKind kind,
                             const UsageEvent& event) {
  const auto it = open.find(number);
  if (it == open.end() || it->second.held)
    return Error{Code::stale, "journal: event " + std::to_string(number) + " is not open", kNoOffset};
  scratch.clear();
  if (!usage::append_record(scratch, kind, number, event))
    return Error{Code::invalid_argument, "journal: an event holds 64 KiB of text at most", kNoOffset};
  flush_held();
  if (held.empty() && append(scratch)) {
    forget(number);
    ++stats.ends;
    return after_append(lock, false);
  }
  if (held.size() < options.max_held_ends) {
    it->second.held = true;
    held.push_back({number, scratch});
    ++stats.ends;
  } else {
    ++stats.lost_ends;
  }
  return append_error();
}

Status Journal::end(std::uint64_t number, const UsageEvent& event) {
  if (number == 0) return {};
  std::unique_lock lock(impl_->mutex);
  return impl_->finish(lock, number, JournalKind::end, event);
}

Status Journal::withdraw(std::uint64_t number) {
  if (number == 0) return {};
  std::unique_lock lock(impl_->mutex);
  return impl_->finish(lock, number, JournalKind::withdrawn, {});
}

Status Journal::sync() {
  std::unique_lock lock(impl_->mutex);
  impl_->flush_held();
  if (!impl_->held.empty()) return impl_->append_error();
  return impl_->after_append(lock, true);
}

Status Journal::acknowledge(JournalCursor cursor) {
  Impl& j = *impl_;
  const std::lock_guard lock(j.mutex);
  if (cursor <= j.cursor) return {};
  if (cursor > JournalCursor{j.segment, j.offset})
    return Error{Code::invalid_argument, "journal: the cursor lies behind the end", kNoOffset};
  j.cursor = cursor;
  if (Status s = j.write_cursor(); !s) return s;
  // Oldest first, and none beyond one that holds something open: recovery needs every end whose begin it finds.
  while (j.segments.size() > 1) {
    const auto oldest = j.segments.begin();
    if (oldest->first >= cursor.segment || oldest->second.open != 0) break;
    const std::string path = usage::segment_path(j.directory, oldest->first);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return journal_error("remove", path);
    j.stats.bytes -= oldest->second.bytes;
    j.segments.erase(oldest);
  }
  return {};
}

JournalCursor Journal::acknowledged() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->cursor;
}

JournalStatistics Journal::statistics() const {
  const std::lock_guard lock(impl_->mutex);
  JournalStatistics s = impl_->stats;
  s.held_ends = impl_->held.size();
  s.open = impl_->open.size();
  return s;
}

}  // namespace warmroute
