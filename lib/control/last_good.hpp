// The folder of an applier: what was applied last, what was ever revoked, which roll-backs there were, and when control was
// last heard of. Private to lib.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/control/applier.hpp"

namespace warmroute::control {

class LastGood {
 public:
  explicit LastGood(std::string folder) : folder_(std::move(folder)) {}
  [[nodiscard]] bool used() const noexcept { return !folder_.empty(); }

  // When control was last heard of, and what the highest generation was then.
  struct Heard {
    std::uint64_t top = 0;
    WallNanos at{};
  };
  struct Kept {
    std::optional<std::string> bytes;  // of the last good snapshot, as they came
    std::vector<KeyRecord> revoked;
    std::vector<RollbackRecord> rollbacks;
    std::optional<Heard> heard;
    std::string faults;  // of files that are there and cannot be used
  };

  // Sweeps what a killed process left half-written.
  Kept load(std::size_t max_bytes);
  // What follows makes the folder if need be.
  Status keep_bytes(std::string_view bytes);
  Status keep_revoked(std::vector<KeyRecord> revoked);
  Status add_rollback(const RollbackRecord& record);
  Status keep_heard(const Heard& heard);

 private:
  Status keep(std::string_view name, std::string_view bytes) const;
  [[nodiscard]] std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }

  const std::string folder_;
};

}  // namespace warmroute::control
