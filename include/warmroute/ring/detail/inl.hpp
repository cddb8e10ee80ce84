/// Bodies of ring/hash_ring.hpp: validation, construction and the calls off the fast path.
#pragma once

#include "warmroute/ring/hash_ring.hpp"

namespace warmroute {
namespace detail {

/// Collects every fault of one call; the first one's code is the error's.
class RingFaults {
 public:
  void add(Code code, std::string what) {
    if (count_++ == 0) code_ = code;
    else message_ += "; ";
    message_ += what;
  }
  [[nodiscard]] bool any() const noexcept { return count_ != 0; }
  [[nodiscard]] Error error() && { return Error{code_, std::move(message_), kNoOffset}; }

 private:
  Code code_ = Code::ok;
  std::size_t count_ = 0;
  std::string message_ = "hash ring refused: ";
};

/// max(1, round half up(points_per_unit * weight)). std::round of the bare product, since floor(x + 0.5) may be
/// contracted to a fused multiply-add on some targets and would then place other points there.
inline double ring_points_wanted(double weight, std::uint32_t points_per_unit) noexcept {
  return std::max(1.0, std::round(points_per_unit * weight));
}

// append, not operator+: g++ 12 warns of its own inlined library code otherwise, in the embedder's build too.
inline std::string ring_label(std::string_view what, std::string_view ring_id) {
  return std::string(what).append(" ('").append(ring_id).append("')");
}
inline std::string ring_member_label(std::string_view ring_id, std::size_t position) {
  return ring_label(std::string("member ").append(std::to_string(position)), ring_id);
}

/// returns: the member's points, or 0 with the fault added.
inline std::uint32_t checked_ring_points(const std::string& label, double weight, const RingOptions& options,
                                         RingFaults& faults) {
  if (!(weight > 0) || weight == std::numeric_limits<double>::infinity()) {
    faults.add(Code::invalid_argument, label + ": weight must be finite and above 0, not " + std::to_string(weight));
    return 0;
  }
  const double wanted = ring_points_wanted(weight, options.points_per_unit);
  if (wanted > options.max_points) {
    faults.add(Code::capacity,
               label + ": weight " + std::to_string(weight) +
                   " is too large, it alone needs more than max_points = " + std::to_string(options.max_points));
    return 0;
  }
  return static_cast<std::uint32_t>(wanted);
}

inline void check_ring_options(const RingOptions& options, RingFaults& faults) {
  if (options.points_per_unit == 0) faults.add(Code::invalid_argument, "points_per_unit must be at least 1");
  constexpr std::uint32_t kMost = 1U << 30;  // so that points and buckets stay far inside 32 bits
  if (options.max_points == 0 || options.max_points > kMost) {
    faults.add(Code::invalid_argument, "max_points must be 1 .. 2^30, not " + std::to_string(options.max_points));
  }
}

inline void check_ring_total(std::uint64_t points, const RingOptions& options, RingFaults& faults) {
  if (points <= options.max_points) return;
  faults.add(Code::capacity, std::to_string(points) +
                                 " points are more than max_points = " + std::to_string(options.max_points) +
                                 "; lower points_per_unit for the whole fleet or raise max_points");
}

/// Names every ring_id and every member number that occurs twice. `order` sorts the members by ring_id.
inline void check_ring_duplicates(std::span<const RingMember> members, std::vector<std::size_t>& order,
                                  RingFaults& faults) {
  const auto report = [&](auto same, const char* what) {
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (!same(members[order[i - 1]], members[order[i]])) continue;
      faults.add(Code::already_exists, ring_member_label(members[order[i]].ring_id, order[i]) + ": same " + what +
                                           " as " + ring_member_label(members[order[i - 1]].ring_id, order[i - 1]));
    }
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return members[a].member < members[b].member; });
  report([](const auto& a, const auto& b) { return a.member == b.member; }, "number");
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return members[a].ring_id < members[b].ring_id; });
  report([](const auto& a, const auto& b) { return a.ring_id == b.ring_id; }, "ring_id");
}

inline Error no_ring_id(std::string_view ring_id) {
  return {Code::not_found, std::string("no ring_id '").append(ring_id).append("' on the ring"), kNoOffset};
}

inline void check_ring_name(const RingMember& member, const std::string& label, RingFaults& faults) {
  if (member.ring_id.empty()) faults.add(Code::invalid_argument, label + ": ring_id is empty");
  if (member.member == kNoMember) faults.add(Code::invalid_argument, label + ": number 2^32-1 means nobody");
}

}  // namespace detail

inline std::string KeySpan::decimal() const {
  std::string digits;
  detail::uint128 rest = keys;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  return digits;
}

inline Result<HashRing> HashRing::build(std::span<const RingMember> members, RingOptions options) {
  detail::RingFaults faults;
  detail::check_ring_options(options, faults);
  if (members.size() > kMaxRingMembers) {
    faults.add(Code::capacity,
               std::to_string(members.size()) + " members are more than " + std::to_string(kMaxRingMembers));
  }
  std::uint64_t total = 0;
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    order[i] = i;
    const std::string label = detail::ring_member_label(members[i].ring_id, i);
    detail::check_ring_name(members[i], label, faults);
    total += detail::checked_ring_points(label, members[i].weight, options, faults);
  }
  detail::check_ring_duplicates(members, order, faults);
  detail::check_ring_total(total, options, faults);
  if (faults.any()) return std::move(faults).error();

  HashRing ring;
  ring.options_ = options;
  for (const std::size_t i : order) ring.members_.push_back(members[i]);
  ring.number_members();
  if (members.empty()) return ring;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(ring.points());
  for (std::uint32_t i = 0; i < ring.size(); ++i) {
    detail::append_ring_points(ring.members_[i].ring_id, 0, ring.points_of(i), options.seed, hashes);
  }
  ring.tables_ = detail::sort_ring(hashes, ring.points_before_);
  return ring;
}

inline void HashRing::number_members() {
  numbers_.clear();
  points_before_.assign(1, 0);
  for (const RingMember& m : members_) {
    numbers_.push_back(m.member);
    const double points = detail::ring_points_wanted(m.weight, options_.points_per_unit);
    points_before_.push_back(points_before_.back() + static_cast<std::uint32_t>(points));
  }
}

inline std::size_t HashRing::place_of(std::string_view ring_id) const noexcept {
  const auto at = std::lower_bound(members_.begin(), members_.end(), ring_id,
                                   [](const RingMember& m, std::string_view id) { return m.ring_id < id; });
  return static_cast<std::size_t>(at - members_.begin());
}

inline std::uint32_t HashRing::find(std::string_view ring_id) const noexcept {
  const std::size_t at = place_of(ring_id);
  return at < size() && members_[at].ring_id == ring_id ? static_cast<std::uint32_t>(at) : kNoMember;
}

/// The ring in which the member at `index` has `points` points (0: it is not there) and is `member`.
inline Result<HashRing> HashRing::with_points(std::size_t index, std::uint32_t points, RingMember member) const {
  const bool present = index < size() && members_[index].ring_id == member.ring_id;
  const std::uint32_t had = present ? points_of(static_cast<std::uint32_t>(index)) : 0;
  detail::RingFaults faults;
  detail::check_ring_total(std::uint64_t{this->points()} - had + points, options_, faults);
  if (faults.any()) return std::move(faults).error();

  HashRing ring;
  ring.options_ = options_;
  ring.members_ = members_;
  const auto at = ring.members_.begin() + static_cast<std::ptrdiff_t>(index);
  const std::string ring_id = member.ring_id;
  if (points == 0) ring.members_.erase(at);
  else if (present) *at = std::move(member);
  else ring.members_.insert(at, std::move(member));
  ring.number_members();
  if (ring.empty()) return ring;
  if (points == had) {
    ring.tables_ = tables_;
    return ring;
  }
  detail::RingChange change;
  change.owner = static_cast<std::uint16_t>(index);
  if (points == 0) change.renumber = -1;
  if (!present) change.renumber = 1;
  change.adding = points > had;
  detail::append_ring_points(ring_id, std::min(had, points), std::max(had, points), options_.seed, change.hashes);
  std::sort(change.hashes.begin(), change.hashes.end());
  if (empty()) {
    const std::array<std::uint32_t, 2> only{0, points};
    ring.tables_ = detail::sort_ring(change.hashes, only);
  } else {
    ring.tables_ = detail::change_ring(tables_, change, ring.size());
  }
  return ring;
}

inline Result<HashRing> HashRing::with_added(const RingMember& added) const {
  detail::RingFaults faults;
  const std::string label = detail::ring_label("added member", added.ring_id);
  detail::check_ring_name(added, label, faults);
  if (find(added.ring_id) != kNoMember) faults.add(Code::already_exists, label + ": the ring_id is on the ring");
  if (std::find(numbers_.begin(), numbers_.end(), added.member) != numbers_.end()) {
    faults.add(Code::already_exists, label + ": number " + std::to_string(added.member) + " is on the ring");
  }
  if (size() >= kMaxRingMembers) faults.add(Code::capacity, label + ": the ring has its most members");
  const std::uint32_t points = detail::checked_ring_points(label, added.weight, options_, faults);
  if (faults.any()) return std::move(faults).error();
  return with_points(place_of(added.ring_id), points, added);
}

inline Result<HashRing> HashRing::with_removed(std::string_view ring_id) const {
  const std::uint32_t index = find(ring_id);
  if (index == kNoMember) return detail::no_ring_id(ring_id);
  return with_points(index, 0, members_[index]);
}

inline Result<HashRing> HashRing::with_weight(std::string_view ring_id, double weight) const {
  const std::uint32_t index = find(ring_id);
  if (index == kNoMember) return detail::no_ring_id(ring_id);
  detail::RingFaults faults;
  RingMember changed = members_[index];
  changed.weight = weight;
  const std::uint32_t points =
      detail::checked_ring_points(detail::ring_label("member", changed.ring_id), weight, options_, faults);
  if (faults.any()) return std::move(faults).error();
  return with_points(index, points, std::move(changed));
}

inline Result<HashRing> HashRing::with_member(std::string_view ring_id, std::uint32_t member) const {
  const std::uint32_t index = find(ring_id);
  if (index == kNoMember) return detail::no_ring_id(ring_id);
  detail::RingFaults faults;
  RingMember changed = members_[index];
  const bool taken = member != changed.member && std::find(numbers_.begin(), numbers_.end(), member) != numbers_.end();
  changed.member = member;
  detail::check_ring_name(changed, detail::ring_label("member", changed.ring_id), faults);
  if (taken)
    faults.add(Code::already_exists, std::string("number ").append(std::to_string(member)).append(" is on the ring"));
  if (faults.any()) return std::move(faults).error();
  return with_points(index, points_of(index), std::move(changed));
}

inline std::size_t HashRing::successors(std::uint64_t key, std::span<std::uint32_t> out) const noexcept {
  const std::size_t wanted = std::min(out.size(), size());
  if (wanted == 0) return 0;
  // The window of the key's point names its first distinct owners; it is rarely too short for a few.
  const detail::RingPoint* const window = tables_.entries.data() + tables_.locate(key);
  std::uint32_t firsts = window->firsts;
  for (std::size_t count = 0; count < wanted; ++count) {
    if (firsts == 0) return walk_successors(key, out.first(wanted));
    out[count] = numbers_[window[std::countr_zero(firsts)].owner];
    firsts &= firsts - 1;
  }
  return wanted;
}

inline std::size_t HashRing::walk_successors(std::uint64_t key, std::span<std::uint32_t> out) const noexcept {
  RingWalk walk(*this, key);
  for (std::uint32_t& member : out) member = walk.next();
  return out.size();
}

inline std::vector<KeySpan> HashRing::shares() const {
  std::vector<KeySpan> spans(size());
  const std::size_t count = points();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t before = tables_.hashes[i == 0 ? count - 1 : i - 1];
    const std::uint64_t length = tables_.hashes[i] - before;
    spans[tables_.entries[i].owner].keys += length;
  }
  // All arcs are zero modulo 2^64 when all points lie on one place: its first owner has everything.
  if (count != 0 && tables_.hashes[0] == tables_.hashes[count - 1])
    spans[tables_.entries[0].owner] = KeySpan::everything();
  return spans;
}

inline std::size_t HashRing::memory_bytes() const noexcept {
  std::size_t bytes = sizeof(*this) + tables_.hashes.capacity() * sizeof(std::uint64_t) +
                      tables_.entries.capacity() * sizeof(detail::RingPoint) +
                      tables_.buckets.capacity() * sizeof(std::uint32_t) + members_.capacity() * sizeof(RingMember) +
                      numbers_.capacity() * sizeof(std::uint32_t) + points_before_.capacity() * sizeof(std::uint32_t);
  for (const RingMember& m : members_) bytes += m.ring_id.capacity();
  return bytes;
}

}  // namespace warmroute
