#include "control/last_good.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <charconv>

#include "control/files.hpp"
#include "text/json_escape.hpp"
#include "text/strict_json.hpp"

namespace warmroute::control {
namespace {

constexpr std::string_view kSnapshotFile = "last_good";
constexpr std::string_view kRevokedFile = "revoked";
constexpr std::string_view kRollbackFile = "rollbacks";
constexpr std::string_view kHeardFile = "heard";
constexpr std::size_t kMaxStateBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxRollbacks = 1'000;
constexpr std::string_view kRevokedBegin = "{\"warmroute_revoked\":1,\"sha256\":\"";
constexpr std::string_view kRevokedEnd = "\"}\n";

std::string sha256_text(std::string_view bytes) {
  std::array<std::uint8_t, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) return {};
  return text::hex_text(digest);
}

// The revoked keys are written as a snapshot of nothing else, behind a line with its checksum.
std::string revoked_text(std::vector<KeyRecord> revoked) {
  Snapshot snapshot;
  snapshot.generation = 1;
  snapshot.keys = std::move(revoked);
  const std::string body = write_snapshot(snapshot);
  return std::string(kRevokedBegin).append(sha256_text(body)).append(kRevokedEnd) + body;
}

Result<std::vector<KeyRecord>> read_revoked(std::string_view bytes) {
  const std::size_t head = kRevokedBegin.size() + 64 + kRevokedEnd.size();
  if (bytes.size() < head) return Error{Code::malformed, "it is cut off", 0};
  const std::string_view body = bytes.substr(head);
  if (bytes.substr(0, head) != std::string(kRevokedBegin).append(sha256_text(body)).append(kRevokedEnd))
    return Error{Code::malformed, "its checksum does not fit", 0};
  SnapshotOptions options;
  options.max_bytes = kMaxStateBytes;
  options.max_keys = ~std::size_t{0};
  auto snapshot = parse_snapshot(body, options);
  if (!snapshot) return snapshot.error();
  return std::move(snapshot->keys);
}

std::string rollback_line(const RollbackRecord& r) {
  std::string out = "{\"from\": " + std::to_string(r.from) + ", \"to\": " + std::to_string(r.to) + ", \"reason\": ";
  text::append_json_string(out, r.reason);
  out += ", \"signed_by\": ";
  text::append_json_string(out, r.signed_by);
  return out + ", \"at\": \"" + text::time_text(r.at) + "\"}\n";
}

bool read_rollback(std::string_view line, RollbackRecord& out) {
  constexpr std::array<std::string_view, 5> kNames{"from", "to", "reason", "signed_by", "at"};
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(line.data(), line.size()).get(root) != simdjson::SUCCESS) return false;
  text::Faults faults(1);
  const text::Path at;
  text::Members m(faults, at, root, kNames);
  for (const std::string_view name : kNames) m.need(name);
  m.unsigned_integer("from", out.from);
  m.unsigned_integer("to", out.to);
  m.text("reason", out.reason, 4'096);
  m.time("at", out.at);
  std::string_view signer;
  const simdjson::dom::element* const by = m.find("signed_by");
  if (by != nullptr && by->get(signer) == simdjson::SUCCESS) out.signed_by = signer;
  return faults.empty();
}

bool read_heard(std::string_view text, LastGood::Heard& out) {
  const char* const end = text.data() + text.size();
  const auto top = std::from_chars(text.data(), end, out.top);
  if (top.ec != std::errc{} || top.ptr == end || *top.ptr != ' ') return false;
  const auto at = std::from_chars(top.ptr + 1, end, out.at.value);
  return at.ec == std::errc{} && at.ptr != end && *at.ptr == '\n';
}

// Files beside others that were never renamed.
void sweep(const std::string& folder) {
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return;
  std::vector<std::string> left;
  while (const dirent* const entry = ::readdir(open)) {  // NOLINT(concurrency-mt-unsafe): of a stream of our own
    if (std::string_view(entry->d_name).find(".new.") != std::string_view::npos) left.emplace_back(entry->d_name);
  }
  ::closedir(open);
  for (const std::string& name : left) {
    std::string file = folder;
    file.append("/").append(name);
    ::unlink(file.c_str());
  }
}

}  // namespace

LastGood::Kept LastGood::load(std::size_t max_bytes) {
  Kept kept;
  const auto fault = [&](std::string_view what, std::string_view why) {
    kept.faults.append(kept.faults.empty() ? "" : "; ").append(what).append(": ").append(why);
  };
  sweep(folder_);
  // returns: nullopt: there is none, or it cannot be read, which is a fault.
  const auto read = [&](std::string_view name, std::size_t most) -> std::optional<std::string> {
    auto bytes = read_file(path(name), most);
    if (bytes) return std::move(*bytes);
    if (bytes.code() != Code::not_found) fault(name, bytes.error().message);
    return std::nullopt;
  };
  kept.bytes = read(kSnapshotFile, max_bytes);
  if (const auto bytes = read(kRevokedFile, kMaxStateBytes)) {
    auto revoked = read_revoked(*bytes);
    if (revoked) kept.revoked = std::move(*revoked);
    else fault(kRevokedFile, revoked.error().message);
  }
  if (const auto bytes = read(kRollbackFile, kMaxStateBytes)) {
    std::string_view rest = *bytes;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      RollbackRecord record;
      if (!line.empty() && read_rollback(line, record)) kept.rollbacks.push_back(std::move(record));
    }
    if (kept.rollbacks.size() > kMaxRollbacks)
      kept.rollbacks.erase(kept.rollbacks.begin(), kept.rollbacks.end() - std::ptrdiff_t{kMaxRollbacks});
  }
  if (const auto bytes = read(kHeardFile, 4'096)) {
    Heard heard;
    if (read_heard(*bytes, heard)) kept.heard = heard;
    else fault(kHeardFile, "it is damaged");
  }
  return kept;
}

Status LastGood::keep(std::string_view name, std::string_view bytes) const {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return file_error("make", folder_);
  return replace_file(path(name), bytes);
}

Status LastGood::keep_bytes(std::string_view bytes) { return keep(kSnapshotFile, bytes); }

Status LastGood::keep_revoked(std::vector<KeyRecord> revoked) {
  return keep(kRevokedFile, revoked_text(std::move(revoked)));
}

// Lines are only ever added: nobody rewrites an audit.
Status LastGood::add_rollback(const RollbackRecord& record) {
  const std::string file = path(kRollbackFile);
  Descriptor out(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat about {};
  if (!out.ok() || fstat(out.get(), &about) != 0) return file_error("open", file);
  char last = '\n';
  if (about.st_size > 0 && ::pread(out.get(), &last, 1, about.st_size - 1) != 1) return file_error("read", file);
  const std::string line = (last == '\n' ? "" : "\n") + rollback_line(record);
  if (!write_all(out.get(), line) || ::fsync(out.get()) != 0) return file_error("write", file);
  return {};
}

Status LastGood::keep_heard(const Heard& heard) {
  return keep(kHeardFile, std::to_string(heard.top) + " " + std::to_string(heard.at.value) + "\n");
}

}  // namespace warmroute::control
