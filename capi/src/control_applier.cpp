// What control says, put in.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control.hpp"
#include "policy.hpp"
#include "router.hpp"
#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_price_slot {
  wr_price_slot() = default;
  wr_price_slot(const wr_price_slot&) = delete;
  wr_price_slot& operator=(const wr_price_slot&) = delete;
  ~wr_price_slot() { let_go(shown); }

  PriceSlot slot;
  std::mutex mutex;
  wr_price_table* shown = nullptr;  // the handle of what was taken out last
};

// The caller's callbacks, and the router's policy. Lives at one address.
struct wr_applier final : private SnapshotListener {
  wr_applier(const wr_applier_options& o, ControlOptions options)
      : check_fn(o.check),
        applied_fn(o.applied),
        rolled_back_fn(o.rolled_back),
        user(o.user),
        router(o.router),
        applier(std::move(options),
                {o.keys != nullptr ? &o.keys->set : nullptr, o.limits != nullptr ? &o.limits->limits : nullptr,
                 o.prices != nullptr ? &o.prices->slot : nullptr, this}) {}

  wr_snapshot_check_fn check_fn;
  wr_snapshot_applied_fn applied_fn;
  wr_rollback_fn rolled_back_fn;
  void* user;
  wr_router* router;
  SnapshotApplier applier;

  static void tell(wr_rollback_fn told, void* whom, const RollbackRecord& r) {
    const wr_rollback out{sizeof(wr_rollback), 0, r.from, r.to, str(r.reason), str(r.signed_by), r.at.value, {}};
    told(whom, &out);
  }

 private:
  Status check(const Snapshot& snapshot) override {
    if (check_fn == nullptr) return {};
    const wr_snapshot shown(&snapshot);
    return said_by([&](wr_error* err) { return check_fn(user, &shown, err); });
  }
  // The parser has asked `validate`, which is all that a router asks.
  void applied(const Snapshot& snapshot) override {
    if (router != nullptr && snapshot.policy) (void)router->router.set_policy(*snapshot.policy);
    if (applied_fn == nullptr) return;
    const wr_snapshot shown(&snapshot);
    applied_fn(user, &shown);
  }
  void rolled_back(const RollbackRecord& record) override {
    if (rolled_back_fn != nullptr) tell(rolled_back_fn, user, record);
  }
};

SnapshotApplier& capi::applier_of(wr_applier& handle) noexcept { return handle.applier; }

namespace {

const wr_applier_options kApplierDefaults = WR_APPLIER_OPTIONS_INIT;
constexpr std::string_view kNoApplier = "applier is NULL, or a string has a size and no data";

UsageTime control_time(std::int64_t steady_ns, std::int64_t wall_ns) noexcept {
  return {Nanos{steady_ns}, WallNanos{wall_ns}};
}

wr_control_status status_of(const ControlStatus& s) noexcept {
  wr_control_status out = WR_CONTROL_STATUS_INIT;
  out.on_expired = static_cast<std::uint32_t>(s.on_expired);
  out.generation = s.generation;
  out.top_generation = s.top_generation;
  out.issued_at_wall_ns = s.issued_at.value;
  out.age_ns = s.age.value;
  out.max_age_ns = s.max_age.value;
  out.expired = s.expired ? 1 : 0;
  out.from_disk = s.from_disk ? 1 : 0;
  out.keys = s.keys;
  out.revoked = s.revoked;
  out.applied = s.applied;
  out.confirmed = s.confirmed;
  out.refused = s.refused;
  out.rollbacks = s.rollbacks;
  out.keep_failures = s.keep_failures;
  out.last_status = static_cast<wr_status>(s.last_code);
  copy_cut(s.last_error, out.last_error);
  return out;
}

}  // namespace

extern "C" {

wr_status wr_price_slot_new(wr_price_slot** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_price_slot>().release();
    return WR_STATUS_OK;
  });
}

void wr_price_slot_free(wr_price_slot* slot) { delete slot; }

wr_status wr_price_slot_get(wr_price_slot* slot, wr_price_table** out, wr_error* err) {
  if (slot == nullptr || out == nullptr) return null_argument(err, "slot or out is NULL");
  return guard(err, [&] {
    const std::lock_guard lock(slot->mutex);
    auto table = slot->slot.get();
    if (table == nullptr) return fail(err, Code::not_found, "nothing was put into the slot yet");
    if (slot->shown == nullptr || slot->shown->table != table) {
      auto handle = std::make_unique<wr_price_table>(std::move(table));
      let_go(std::exchange(slot->shown, handle.release()));
    }
    ++slot->shown->holders;
    *out = slot->shown;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_price_slot_set(wr_price_slot* slot, wr_price_table* table, wr_error* err) {
  if (slot == nullptr) return null_argument(err, "slot is NULL");
  return guard(err, [&] {
    const std::lock_guard lock(slot->mutex);
    if (table != nullptr) {
      table->own = nullptr;
      ++table->holders;
    }
    slot->slot.set(table != nullptr ? table->table : nullptr);
    let_go(std::exchange(slot->shown, table));
    return WR_STATUS_OK;
  });
}

wr_status wr_applier_new(const wr_applier_options* options, wr_applier** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  const Input<wr_applier_options> in(options, kApplierDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->directory) || !readable(in->price_file)) return null_argument(err, kNoApplier);
  return guard(err, [&] {
    ControlOptions chosen;
    if (const wr_status bad = read_trust(in->trust, chosen.trust, err); bad != WR_STATUS_OK) return bad;
    const Policy base = in->router != nullptr ? in->router->router.policy() : Policy{};
    if (const wr_status bad = read_snapshot_options(in->snapshot, base, chosen.snapshot, err); bad != WR_STATUS_OK) {
      return bad;
    }
    chosen.directory = view(in->directory);
    chosen.price_file = view(in->price_file);
    *out = std::make_unique<wr_applier>(*in, std::move(chosen)).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_applier_free(wr_applier* applier) { delete applier; }

wr_status wr_applier_load_last_good(wr_applier* applier, int64_t steady_ns, int64_t wall_ns, uint32_t* found,
                                    wr_error* err) {
  if (applier == nullptr) return null_argument(err, kNoApplier);
  return guard(err, [&] {
    const auto loaded = applier->applier.load_last_good(control_time(steady_ns, wall_ns));
    if (!loaded) return fail(err, loaded.error());
    if (found != nullptr) *found = *loaded ? 1 : 0;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_applier_apply(wr_applier* applier, wr_str bytes, int64_t steady_ns, int64_t wall_ns, wr_applied* out,
                           wr_error* err) {
  if (applier == nullptr || !readable(bytes)) return null_argument(err, kNoApplier);
  if (out != nullptr && !writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const auto applied = applier->applier.apply(view(bytes), control_time(steady_ns, wall_ns));
    if (!applied) return fail(err, applied.error());
    if (out == nullptr) return static_cast<wr_status>(WR_STATUS_OK);
    wr_applied told = WR_APPLIED_INIT;
    told.unchanged = applied->unchanged ? 1 : 0;
    told.generation = applied->generation;
    told.rolled_back = applied->rolled_back ? 1 : 0;
    copy_cut(applied->signed_by, told.signed_by);
    copy_cut(applied->kept_error, told.kept_error);
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_applier_confirm(wr_applier* applier, int64_t steady_ns, int64_t wall_ns, wr_error* err) {
  if (applier == nullptr) return null_argument(err, kNoApplier);
  return guard(err, [&] {
    applier->applier.confirm(control_time(steady_ns, wall_ns));
    return WR_STATUS_OK;
  });
}

wr_status wr_applier_revoke(wr_applier* applier, wr_str public_id, uint64_t version, wr_error* err) {
  if (applier == nullptr || !readable(public_id)) return null_argument(err, kNoApplier);
  return guard(err, [&] { return done(applier->applier.revoke(view(public_id), version), err); });
}

wr_status wr_applier_read_status(const wr_applier* applier, int64_t now_ns, wr_control_status* out, wr_error* err) {
  if (applier == nullptr) return null_argument(err, kNoApplier);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    write(out, status_of(applier->applier.status(Nanos{now_ns})));
    return WR_STATUS_OK;
  });
}

wr_status wr_applier_visit_rollbacks(const wr_applier* applier, wr_rollback_fn visit, void* user, size_t* count,
                                     wr_error* err) {
  if (applier == nullptr) return null_argument(err, kNoApplier);
  return guard(err, [&] {
    const std::vector<RollbackRecord> all = applier->applier.rollbacks();
    if (visit != nullptr) {
      for (const RollbackRecord& record : all) wr_applier::tell(visit, user, record);
    }
    if (count != nullptr) *count = all.size();
    return WR_STATUS_OK;
  });
}

wr_status wr_applier_prometheus(const wr_applier* applier, int64_t now_ns, char* buf, size_t cap, size_t* needed,
                                wr_error* err) {
  if (applier == nullptr || needed == nullptr) return null_argument(err, "applier or needed is NULL");
  return guard(err, [&] {
    std::string page;
    append_prometheus(applier->applier.status(Nanos{now_ns}), page);
    return give(page, 1, buf, cap, needed, err);
  });
}

}  // extern "C"
