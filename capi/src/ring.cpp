// The consistent-hash ring.
#include <memory>
#include <string>
#include <vector>

#include "support.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/ring/movement.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_ring {
  explicit wr_ring(HashRing made) : ring(std::move(made)) {
    for (const RingMember& member : ring.members()) highest = std::max(highest, member.member);
  }
  HashRing ring;
  std::uint32_t highest = 0;  // member number
};

namespace {

wr_status publish(Result<HashRing> made, wr_ring** out, wr_error* err) {
  if (!made) return fail(err, made.error());
  *out = std::make_unique<wr_ring>(std::move(*made)).release();
  return WR_STATUS_OK;
}

RingMember member_of(const wr_ring_member& m) { return {std::string(view(m.ring_id)), m.member, m.weight}; }

const wr_ring_member kMemberDefaults = WR_RING_MEMBER_INIT;

template <class Change>
wr_status change(const wr_ring* ring, wr_str ring_id, wr_ring** out, wr_error* err, Change&& apply) {
  if (ring == nullptr || out == nullptr || !readable(ring_id)) {
    return null_argument(err, "ring, ring_id or out is NULL");
  }
  return guard(err, [&] { return publish(apply(ring->ring), out, err); });
}

}  // namespace

extern "C" {

wr_status wr_ring_new(const wr_ring_member* members, size_t count, size_t stride, const wr_ring_options* options,
                      wr_ring** out, wr_error* err) {
  if (out == nullptr || !readable(members, count)) return null_argument(err, "members or out is NULL");
  if (!strides_fit<wr_ring_member>(count, stride)) {
    return fail(err, Code::invalid_argument,
                "stride is smaller than a wr_ring_member, or no multiple of its alignment");
  }
  const wr_ring_options defaults = WR_RING_OPTIONS_INIT;
  const Input<wr_ring_options> in(options != nullptr ? options : &defaults, defaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  return guard(err, [&] {
    std::vector<RingMember> list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Input<wr_ring_member> member(at(members, i, stride), kMemberDefaults);
      if (!member) return member.refuse(err, "a member is NULL");
      if (!readable(member->ring_id)) return null_argument(err, "a ring_id has a size and no data");
      list.push_back(member_of(*member));
    }
    RingOptions ring;
    ring.points_per_unit = in->points_per_unit;
    ring.max_points = in->max_points;
    ring.seed = in->seed;
    ring.key_rule = in->key_rule;
    return publish(HashRing::build(list, ring), out, err);
  });
}

void wr_ring_free(wr_ring* ring) { delete ring; }

wr_status wr_ring_with_added(const wr_ring* ring, const wr_ring_member* member, wr_ring** out, wr_error* err) {
  const Input<wr_ring_member> in(member, kMemberDefaults);
  if (!in) return in.refuse(err, "member is NULL");
  return change(ring, in->ring_id, out, err, [&](const HashRing& old) { return old.with_added(member_of(*in)); });
}
wr_status wr_ring_with_removed(const wr_ring* ring, wr_str ring_id, wr_ring** out, wr_error* err) {
  return change(ring, ring_id, out, err, [&](const HashRing& old) { return old.with_removed(view(ring_id)); });
}
wr_status wr_ring_with_weight(const wr_ring* ring, wr_str ring_id, double weight, wr_ring** out, wr_error* err) {
  return change(ring, ring_id, out, err, [&](const HashRing& old) { return old.with_weight(view(ring_id), weight); });
}
wr_status wr_ring_with_member(const wr_ring* ring, wr_str ring_id, uint32_t member, wr_ring** out, wr_error* err) {
  return change(ring, ring_id, out, err, [&](const HashRing& old) { return old.with_member(view(ring_id), member); });
}

size_t wr_ring_size(const wr_ring* ring) { return ring == nullptr ? 0 : ring->ring.size(); }
uint32_t wr_ring_home(const wr_ring* ring, uint64_t key) {
  return ring == nullptr ? WR_NO_MEMBER : ring->ring.home(key);
}

wr_status wr_ring_home_batch(const wr_ring* ring, const uint64_t* keys, size_t count, size_t stride, uint32_t* out,
                             size_t out_stride, wr_error* err) {
  if (ring == nullptr || !readable(keys, count) || !readable(out, count)) {
    return null_argument(err, "ring, keys or out is NULL");
  }
  if (count > 1 && (stride < sizeof *keys || out_stride < sizeof *out)) {
    return fail(err, Code::invalid_argument, "a stride is smaller than what lies there: strides are in bytes");
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t key = 0;  // strides need not be multiples of the items' alignment
    std::memcpy(&key, reinterpret_cast<const char*>(keys) + i * stride, sizeof key);
    const std::uint32_t home = ring->ring.home(key);
    std::memcpy(reinterpret_cast<char*>(out) + i * out_stride, &home, sizeof home);
  }
  return WR_STATUS_OK;
}

wr_status wr_ring_successors(const wr_ring* ring, uint64_t key, uint32_t* out, size_t cap, size_t* count,
                             wr_error* err) {
  if (ring == nullptr || count == nullptr || !readable(out, cap)) {
    return null_argument(err, "ring, out or count is NULL");
  }
  *count = ring->ring.successors(key, {out, cap});
  return WR_STATUS_OK;
}

wr_status wr_ring_share(const wr_ring* ring, wr_str ring_id, double* fraction, wr_error* err) {
  if (ring == nullptr || fraction == nullptr || !readable(ring_id)) {
    return null_argument(err, "ring, ring_id or fraction is NULL");
  }
  return guard(err, [&] {
    const std::uint32_t index = ring->ring.find(view(ring_id));
    if (index == kNoMember) return fail(err, Code::not_found, "no member of the ring has that ring_id");
    *fraction = ring->ring.shares()[index].fraction();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_ring_movement(const wr_ring* before, const wr_ring* after, double* fraction, wr_error* err) {
  if (before == nullptr || after == nullptr || fraction == nullptr) {
    return null_argument(err, "before, after or fraction is NULL");
  }
  return guard(err, [&] {
    *fraction = movement_between(before->ring, after->ring).fraction();
    return WR_STATUS_OK;
  });
}

wr_status wr_ring_bounded_pick(const wr_ring* ring, const wr_load_bound* bound, uint64_t key, int64_t request,
                               const int64_t* loads, const uint8_t* eligible, size_t load_count, wr_bounded_pick* out,
                               wr_error* err) {
  if (ring == nullptr || !readable(loads, load_count)) return null_argument(err, "ring or loads is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const wr_load_bound defaults = WR_LOAD_BOUND_INIT;
  const Input<wr_load_bound> in(bound != nullptr ? bound : &defaults, defaults);
  if (!in) return in.refuse(err, "bound is NULL");
  if (!ring->ring.empty() && ring->highest >= load_count) {
    return fail(err, Code::out_of_range, "loads must have an entry for every member number of the ring");
  }
  if (in->order > WR_SPILL_PERMUTED) return fail(err, Code::out_of_range, "order is not one of WR_SPILL_...");
  LoadBound rule{in->factor, in->order == WR_SPILL_CLOCKWISE ? SpillOrder::clockwise : SpillOrder::permuted,
                 in->spill_seed, in->max_probes};
  if (!(in->factor >= 1.0 && in->factor <= 1000.0)) {
    return guard(err, [&] { return done(rule.validate(), err); });
  }
  const BoundedPick pick = bounded_pick_among(
      ring->ring, key, rule, request, [&](std::uint32_t member) { return loads[member]; },
      [&](std::uint32_t member) { return eligible == nullptr || eligible[member] != 0; });
  write(out, wr_bounded_pick{0, pick.member, pick.probes, pick.diverted, pick.over_bound, 0, {}});
  return WR_STATUS_OK;
}

}  // extern "C"
