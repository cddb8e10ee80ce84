// Reading a journal, in pieces of 256 KiB, also while it grows.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "usage/file.hpp"
#include "usage/journal_record.hpp"

namespace warmroute {

struct JournalReader::Impl {
  explicit Impl(std::string dir) : directory(std::move(dir)) {}

  // To the first segment from `n` on. returns: false: there is none.
  Result<bool> enter(std::uint64_t n, std::uint64_t offset);
  // Reads on from the cursor. errors: io.
  Status refill();

  const std::string directory;
  usage::Descriptor file{-1};
  usage::JournalId id{};
  JournalCursor cursor;
  std::string buffer;    // what follows the cursor
  std::size_t used = 0;  // of the buffer
  std::array<CostLine, kPriceMeterCount> bill{};
};

Result<bool> JournalReader::Impl::enter(std::uint64_t n, std::uint64_t offset) {
  const auto found = usage::list_segments(directory);
  if (!found) return found.error();
  const auto it = std::lower_bound(found->begin(), found->end(), n);
  if (it == found->end()) return false;
  const std::string path = usage::segment_path(directory, *it);
  usage::Descriptor next(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!next.ok()) return Error{Code::io, "journal: cannot open " + path, kNoOffset};
  char head[usage::kSegmentHeader];
  const ssize_t have = pread(next.get(), head, sizeof head, 0);
  usage::SegmentHead parsed;
  if (have < 0 || !usage::read_segment_header({head, static_cast<std::size_t>(have)}, parsed)) {
    if (have >= 0 && static_cast<std::size_t>(have) < sizeof head) return false;  // is being made
    return Error{Code::malformed, "journal: " + path + " is no segment of this version", 0};
  }
  file = std::move(next);
  id = parsed.id;
  cursor = {*it, *it == n ? std::max<std::uint64_t>(offset, usage::kSegmentHeader) : usage::kSegmentHeader};
  buffer.clear();
  used = 0;
  return true;
}

Status JournalReader::Impl::refill() {
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  buffer.resize(kPiece);
  used = 0;
  ssize_t n = -1;
  do {
    n = pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(cursor.offset));
  } while (n < 0 && errno == EINTR);
  buffer.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return n < 0 ? Status{Error{Code::io, "journal: cannot read " + directory, cursor.offset}} : Status{};
}

JournalReader::JournalReader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
JournalReader::~JournalReader() = default;
JournalReader::JournalReader(JournalReader&&) noexcept = default;
JournalReader& JournalReader::operator=(JournalReader&&) noexcept = default;

Result<JournalReader> JournalReader::open(const std::string& directory, JournalCursor from) {
  auto impl = std::make_unique<Impl>(directory);
  impl->cursor = from;
  if (auto r = impl->enter(from.segment, from.offset); !r) return r.error();
  return JournalReader{std::move(impl)};
}

Result<bool> JournalReader::next(JournalRecord& record, bool begins) {
  Impl& r = *impl_;
  for (;;) {
    if (!r.file.ok()) {
      auto entered = r.enter(r.cursor.segment, r.cursor.offset);
      if (!entered || !*entered) return entered;
    }
    std::string_view payload = usage::whole_payload(std::string_view{r.buffer}.substr(r.used));
    if (payload.empty()) {
      // Asked before reading: if there is a later segment, nothing is written to this one any more.
      const auto all = usage::list_segments(r.directory);
      if (!all) return all.error();
      const bool later = !all->empty() && all->back() > r.cursor.segment;
      if (Status s = r.refill(); !s) return s.error();
      payload = usage::whole_payload(r.buffer);
      if (payload.empty()) {
        if (!later) return false;
        auto entered = r.enter(r.cursor.segment + 1, 0);
        if (!entered || !*entered) return entered;
        continue;
      }
    }
    r.used += usage::kRecordHeader + payload.size();
    r.cursor.offset += usage::kRecordHeader + payload.size();
    if (!usage::read_payload(payload, record, r.bill)) continue;  // of a later version
    if (record.kind != JournalKind::end && record.kind != JournalKind::incomplete && !begins) continue;
    record.event_id = usage::event_id(r.id, record.number);
    return true;
  }
}

JournalCursor JournalReader::cursor() const noexcept { return impl_->cursor; }

}  // namespace warmroute
