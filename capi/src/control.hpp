/// What the parts of control share: snapshots behind their handle, trust, what callbacks say, texts of fixed size.
#pragma once

#include <string>

#include "support.hpp"
#include "warmroute/control/applier.hpp"
#include "warmroute/control/signature.hpp"
#include "warmroute/control/snapshot.hpp"

/// Of a document of its own, or of one that an applier shows to a callback.
struct wr_snapshot {
  explicit wr_snapshot(warmroute::Snapshot parsed) : own(std::move(parsed)), snapshot(own) {}
  explicit wr_snapshot(const warmroute::Snapshot* shown) noexcept : snapshot(*shown) {}
  wr_snapshot(const wr_snapshot&) = delete;
  wr_snapshot& operator=(const wr_snapshot&) = delete;

  warmroute::Snapshot own;
  const warmroute::Snapshot& snapshot;
};

struct wr_applier;

namespace warmroute::capi {

wr_status read_trust(const wr_snapshot_trust* given, SnapshotTrust& out, wr_error* err);
/// `base`: where the caller names no policy. The callback for faults is left out.
wr_status read_snapshot_options(const wr_snapshot_options* given, const Policy& base, SnapshotOptions& out,
                                wr_error* err);

/// The applier behind the handle, for a source.
SnapshotApplier& applier_of(wr_applier& handle) noexcept;

template <std::size_t kSize>
void copy_cut(std::string_view from, char (&to)[kSize]) noexcept {
  to[from.copy(to, kSize - 1)] = '\0';
}

/// What a caller's callback said: `call` gets room for its error.
template <class Call>
Status said_by(Call&& call) {
  wr_error err = WR_ERROR_INIT;
  const wr_status status = call(&err);
  if (status == WR_STATUS_OK) return {};
  err.message[sizeof err.message - 1] = '\0';
  const auto code = static_cast<Code>(status);
  const bool known = status > 0 && status <= WR_STATUS_MALFORMED && code_name(code) != "unknown";
  return Error{known ? code : Code::internal, err.message[0] == '\0' ? "the callback refused it" : err.message,
               kNoOffset};
}

}  // namespace warmroute::capi
