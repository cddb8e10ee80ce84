#include "keys/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

namespace warmroute::keys {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

Error bad(std::string message, Code code = Code::invalid_argument) { return {code, std::move(message), kNoOffset}; }

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

SnapshotOptions large() {
  SnapshotOptions options;
  options.max_bytes = kMostBytes;
  options.max_keys = ~std::size_t{0};
  return options;
}

Result<Snapshot> read_signed(std::string_view bytes, const VerifyingKey& key) {
  const auto verified = verify_snapshot(bytes, {{key}, false});
  if (!verified) return verified.error();
  return parse_snapshot(verified->payload, large());
}

// Numbers at the ends of files' names: `<stem><number>` in the folder of `path`.
std::vector<std::uint64_t> numbered(const std::string& path, const std::string& stem) {
  std::vector<std::uint64_t> found;
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(beside(path, "x")).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t number = 0;
    if (name.size() > stem.size() && name.compare(0, stem.size(), stem) == 0 &&
        read_number(std::string_view(name).substr(stem.size()), number))
      found.push_back(number);
  }
  return found;
}

}  // namespace

WallNanos now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return WallNanos{std::chrono::duration_cast<std::chrono::seconds>(since).count() * 1'000'000'000};
}

std::string beside(const std::string& path, const std::string& name) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" + name : path.substr(0, slash + 1) + name;
}

Result<std::string> random_text(std::size_t count) {
  constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";
  static_assert(kLetters.size() == 32);
  std::array<unsigned char, 128> bytes{};
  if (count > bytes.size() || getentropy(bytes.data(), count) != 0) return bad("no random bytes", Code::internal);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += kLetters[bytes[i] & 31];
  return out;
}

Result<Pepper> load_pepper(const Arguments& arguments, const std::string& snapshot_path) {
  Pepper pepper;
  std::string file;
  if (const auto given = arguments.option("pepper")) {
    const std::size_t sign = given->find('=');
    if (sign == std::string::npos || !read_number(std::string_view(*given).substr(0, sign), pepper.version))
      return bad("--pepper: VERSION=FILE is wanted");
    file = given->substr(sign + 1);
  } else {
    const auto found = numbered(snapshot_path, "pepper.");
    if (found.empty())
      return bad("there is no pepper.1 beside the snapshot: give --pepper VERSION=FILE", Code::not_found);
    pepper.version = static_cast<std::uint32_t>(*std::max_element(found.begin(), found.end()));
    file = beside(snapshot_path, "pepper." + std::to_string(pepper.version));
  }
  auto text = read_file(file, 4'096);
  if (!text) return text.error();
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->size() < 16) return bad(file + ": a pepper has 16 bytes or more");
  pepper.text = std::move(*text);
  return pepper;
}

SnapshotStore::~SnapshotStore() {
  if (lock_ >= 0) ::close(lock_);
}

Result<SnapshotStore> SnapshotStore::open(const Arguments& arguments, const std::string& path) {
  const std::string key_file = arguments.option("signing-key").value_or(beside(path, "signing.pem"));
  const auto text = read_file(key_file, 65'536);
  if (!text) return Error{text.code(), "signing key: " + text.error().message, kNoOffset};
  auto key = parse_signing_key(*text);
  if (!key) return Error{key.code(), key_file + ": " + key.error().message, kNoOffset};
  const std::string lock_file = path + ".lock";
  const int lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return bad("cannot open " + lock_file + ": " + std::strerror(errno), Code::io);
  SnapshotStore store(path, std::move(*key), lock);
  if (::flock(lock, LOCK_EX) != 0) return bad("cannot lock " + lock_file, Code::io);
  auto bytes = read_file(path, kMostBytes);
  if (!bytes) return bytes.error();
  store.bytes_ = std::move(*bytes);
  auto snapshot = read_signed(store.bytes_, store.key_.public_key());
  if (!snapshot) return Error{snapshot.code(), path + ": " + snapshot.error().message, kNoOffset};
  store.snapshot_ = std::move(*snapshot);
  return store;
}

Result<Snapshot> SnapshotStore::earlier(std::uint64_t generation) const {
  const std::string file = path_ + ".g" + std::to_string(generation);
  const auto bytes = read_file(file, kMostBytes);
  if (!bytes) return bytes.error();
  auto old = read_signed(*bytes, key_.public_key());
  if (old && old->generation != generation) return bad(file + " holds generation " + std::to_string(old->generation));
  return old;
}

// Also after a roll-back: receivers remember the highest one they saw.
std::uint64_t SnapshotStore::top() const {
  std::uint64_t top = snapshot_.generation;
  if (snapshot_.forced_rollback) top = std::max(top, snapshot_.forced_rollback->from);
  const std::string name = std::filesystem::path(path_).filename().string();
  for (const std::uint64_t kept : numbered(path_, name + ".g")) top = std::max(top, kept);
  return top;
}

Status SnapshotStore::save() {
  Snapshot next = snapshot_;
  next.generation = top() + 1;
  next.forced_rollback.reset();
  return write(next);
}

Status SnapshotStore::roll_back(Snapshot old, std::string reason) {
  old.forced_rollback = ForcedRollback{snapshot_.generation, std::move(reason)};
  return write(old);
}

Status SnapshotStore::write(const Snapshot& changed) {
  Snapshot next = changed;
  next.issued_at = std::max(now(), snapshot_.issued_at);
  const std::string payload = write_snapshot(next);
  // What receivers would refuse is not written.
  if (const auto readable = parse_snapshot(payload, large()); !readable) return readable.error();
  const auto bytes = sign_snapshot(payload, key_);
  if (!bytes) return bytes.error();
  const std::string kept = path_ + ".g" + std::to_string(snapshot_.generation);
  if (::access(kept.c_str(), F_OK) != 0) {
    if (Status s = replace_file(kept, bytes_); !s) return s;
  }
  if (Status s = replace_file(path_, *bytes); !s) return s;
  snapshot_ = std::move(next);
  bytes_ = *bytes;
  return {};
}

}  // namespace warmroute::keys
