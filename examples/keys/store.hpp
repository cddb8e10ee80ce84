/// A snapshot file that is changed one generation at a time: read and verified, changed, signed, replaced; the generation
/// before is kept beside it (`<file>.g7`) for a roll-back. A lock file keeps two commands from losing one another's work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "keys/arguments.hpp"
#include "warmroute/control/signature.hpp"
#include "warmroute/control/snapshot.hpp"

namespace warmroute::keys {

/// returns: what the wall clock says.
WallNanos now();

/// Random text of the kernel: `count` of 32 letters and digits, 5 bits each.
Result<std::string> random_text(std::size_t count);

struct Pepper {
  std::uint32_t version = 1;
  std::string text;
};
/// `--pepper VERSION=FILE`, else `pepper.<highest>` beside the snapshot. errors: not_found, io, invalid_argument.
Result<Pepper> load_pepper(const Arguments& arguments, const std::string& snapshot_path);

class SnapshotStore {
 public:
  /// Opens a snapshot to change it: takes the lock, and reads the signing key (`--signing-key FILE`, else `signing.pem`
  /// beside it). errors: also those of a file that is not signed by that key.
  static Result<SnapshotStore> open(const Arguments& arguments, const std::string& path);
  SnapshotStore(SnapshotStore&& other) noexcept
      : path_(std::move(other.path_)),
        key_(std::move(other.key_)),
        snapshot_(std::move(other.snapshot_)),
        bytes_(std::move(other.bytes_)),
        lock_(std::exchange(other.lock_, -1)) {}
  SnapshotStore& operator=(SnapshotStore&&) = delete;
  ~SnapshotStore();

  [[nodiscard]] Snapshot& snapshot() noexcept { return snapshot_; }
  /// An earlier generation, verified. errors: not_found and those of verifying.
  [[nodiscard]] Result<Snapshot> earlier(std::uint64_t generation) const;
  /// Writes it with the next generation, above all that ever were.
  Status save();
  /// Writes `old` in its place, as a forced roll-back from the generation that is in the file.
  Status roll_back(Snapshot old, std::string reason);

 private:
  SnapshotStore(std::string path, SigningKey key, int lock)
      : path_(std::move(path)), key_(std::move(key)), lock_(lock) {}
  Status write(const Snapshot& next);
  [[nodiscard]] std::uint64_t top() const;

  std::string path_;
  SigningKey key_;
  Snapshot snapshot_;
  std::string bytes_;
  int lock_ = -1;
};

/// returns: `name` in the folder of `path`.
std::string beside(const std::string& path, const std::string& name);

}  // namespace warmroute::keys
