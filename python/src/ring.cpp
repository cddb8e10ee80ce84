// HashRing, the load bound on it, and what moves between two rings.
#include <memory>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/ring/movement.hpp"

namespace warmroute::python {
namespace {

using Loads = ArrayView<std::int64_t>;

// An exact part of the key space as a Python int: 0 .. 2**64.
py::int_ keys_of(const KeySpan& span) {
  const std::string decimal = span.decimal();
  PyObject* number = PyLong_FromString(decimal.c_str(), nullptr, 10);
  if (number == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::int_>(number);
}

HashRing build(const std::vector<RingMember>& members, std::uint64_t seed, std::uint32_t points_per_unit,
               std::uint32_t max_points, std::uint64_t key_rule) {
  auto ring = [&] {
    const ReleasedGil released;
    return HashRing::build(members, {seed, points_per_unit, max_points, key_rule});
  }();
  return value_of(std::move(ring));
}

py::array_t<std::uint32_t> homes(const HashRing& self, const HashView& keys) {
  py::array_t<std::uint32_t> out(static_cast<py::ssize_t>(keys.size()));
  std::uint32_t* home = out.mutable_data();
  const auto span = keys.span();
  const ReleasedGil released;
  for (std::size_t i = 0; i < span.size(); ++i) home[i] = self.home(span[i]);
  return out;
}

std::vector<std::uint32_t> successors(const HashRing& self, std::uint64_t key, std::size_t count) {
  std::vector<std::uint32_t> out(std::min(count, self.size()));
  out.resize(self.successors(key, out));
  return out;
}

BoundedPick pick(const HashRing& self, std::uint64_t key, const Loads& loads, std::int64_t request, double factor,
                 std::optional<std::vector<bool>> eligible, EnumArg<SpillOrder> order, std::uint64_t spill_seed,
                 std::uint32_t max_probes) {
  const LoadBound bound{factor, order, spill_seed, max_probes};
  check(bound.validate());
  const auto span = loads.span();
  std::int64_t total = 0;
  for (const RingMember& member : self.members()) {
    if (member.member >= span.size() || (eligible && member.member >= eligible->size())) {
      throw py::value_error("loads (and eligible) are indexed by member number: member " +
                            std::to_string(member.member) + " has no entry");
    }
    const std::int64_t load = std::max<std::int64_t>(span[member.member], 0);
    total += std::min(load, std::numeric_limits<std::int64_t>::max() - total);
  }
  const auto load_of = [&](std::uint32_t member) { return span[member]; };
  if (!eligible) return bounded_pick(self, key, bound, request, total, load_of);
  return bounded_pick_among(self, key, bound, request, load_of,
                            [&](std::uint32_t member) -> bool { return (*eligible)[member]; });
}

void bind_parts(py::module_& m) {
  py::class_<RingMember>(m, "RingMember",
                         "One member of a ring: a stable slot name, the caller's number for it, its weight (> 0).")
      .def(py::init<std::string, std::uint32_t, double>(), py::arg("ring_id"), py::arg("member"),
           py::arg("weight") = 1.0)
      .def_readonly("ring_id", &RingMember::ring_id)
      .def_readonly("member", &RingMember::member)
      .def_readonly("weight", &RingMember::weight)
      .def(
          "__eq__", [](const RingMember& a, const RingMember& b) { return a == b; }, py::is_operator())
      .def("__hash__",
           [](const RingMember& self) { return py::hash(py::make_tuple(self.ring_id, self.member, self.weight)); })
      .def("__repr__", [](const RingMember& self) {
        return "RingMember('" + self.ring_id + "', " + std::to_string(self.member) + ", " +
               py::str(py::float_(self.weight)).cast<std::string>() + ")";
      });
  py::class_<BoundedPick>(m, "BoundedPick", "What a bounded look-up chose.")
      .def_property_readonly(
          "member",
          [](const BoundedPick& p) -> std::optional<std::uint32_t> {
            if (p.member == kNoMember) return std::nullopt;
            return p.member;
          },
          "None: the ring is empty or nobody is eligible.")
      .def_readonly("probes", &BoundedPick::probes, "Members whose load was read.")
      .def_readonly("diverted", &BoundedPick::diverted, "Not the first eligible member of the key's order.")
      .def_readonly("over_bound", &BoundedPick::over_bound, "Nobody was below its share: the least loaded for it.")
      .def("__repr__", [](const BoundedPick& p) {
        const std::string member = p.member == kNoMember ? "None" : std::to_string(p.member);
        return "<warmroute.BoundedPick member=" + member + " probes=" + std::to_string(p.probes) +
               (p.diverted ? " diverted" : "") + (p.over_bound ? " over_bound" : "") + ">";
      });
  py::class_<Movement>(m, "Movement", "What a change of the ring moves, exactly: no sampling.")
      .def_property_readonly(
          "moved_keys", [](const Movement& self) { return keys_of(self.moved); }, "Of 2**64 keys.")
      .def_property_readonly("fraction", &Movement::fraction, "moved_keys / 2**64.")
      .def_readonly("key_rule_changed", &Movement::key_rule_changed,
                    "The same request has another key now: all is moved, flows are empty.")
      .def_property_readonly(
          "flows",
          [](const Movement& self) {
            std::vector<std::tuple<std::string, std::string, py::int_>> flows;
            for (const KeyFlow& flow : self.flows) flows.emplace_back(flow.from, flow.to, keys_of(flow.span));
            return flows;
          },
          "(from ring_id, to ring_id, keys), sorted; '' stands for nobody.")
      .def("__repr__", [](const Movement& self) {
        return "<warmroute.Movement of " + py::str(py::float_(self.fraction())).cast<std::string>() + " of the keys, " +
               std::to_string(self.flows.size()) + " flows>";
      });
}

void bind_changes(py::class_<HashRing>& ring) {
  ring.def(
          "with_added", [](const HashRing& self, const RingMember& added) { return value_of(self.with_added(added)); },
          py::arg("added"),
          "A new ring with one member more; only its share moves. errors: Error already_exists, invalid_argument, "
          "capacity.")
      .def(
          "with_removed",
          [](const HashRing& self, std::string_view ring_id) { return value_of(self.with_removed(ring_id)); },
          py::arg("ring_id"), "A new ring without that member. errors: Error not_found.")
      .def(
          "with_weight",
          [](const HashRing& self, std::string_view ring_id, double weight) {
            return value_of(self.with_weight(ring_id, weight));
          },
          py::arg("ring_id"), py::arg("weight"),
          "A new ring with another weight there. errors: Error not_found, invalid_argument.")
      .def(
          "with_member",
          [](const HashRing& self, std::string_view ring_id, std::uint32_t member) {
            return value_of(self.with_member(ring_id, member));
          },
          py::arg("ring_id"), py::arg("member"), "The same slot served by another member: no key moves.")
      .def(
          "movement_to", [](const HashRing& self, const HashRing& after) { return movement_between(self, after); },
          py::arg("after"), "What moves when `after` replaces this ring.");
}

}  // namespace

void bind_ring(py::module_& m) {
  bind_parts(m);
  py::class_<HashRing> ring(
      m, "HashRing",
      "An immutable consistent-hash ring. Keys are uniformly distributed 64-bit hashes.\n\n"
      "A member's points depend on (ring_id, seed) alone: changing one moves keys to or from that one only.");
  ring.def(py::init(&build), py::arg("members") = std::vector<RingMember>{}, py::kw_only(), py::arg("seed") = 0,
           py::arg("points_per_unit") = 256, py::arg("max_points") = 1U << 22, py::arg("key_rule") = 0,
           "shape: members in any order. errors: Error invalid_argument, already_exists, capacity; every fault in the "
           "message.")
      .def(
          "home",
          [](const HashRing& self, std::uint64_t key) -> std::optional<std::uint32_t> {
            if (self.empty()) return std::nullopt;
            return self.home(key);
          },
          py::arg("key"), "The member whose point comes first at or after key; None for an empty ring.")
      .def("homes", &homes, py::arg("keys"),
           "home of every key. shape: uint64[n] -> uint32[n]; 2**32-1 for an empty ring. Releases the GIL.")
      .def("successors", &successors, py::arg("key"), py::arg("count"),
           "The first distinct members clockwise from key, home first.")
      .def("bounded_pick", &pick, py::arg("key"), py::arg("loads"), py::arg("request") = 1, py::kw_only(),
           py::arg("factor") = 1.5, py::arg("eligible") = std::nullopt,
           py::arg_v("order", EnumArg<SpillOrder>{}, "'clockwise'"), py::arg("spill_seed") = 0,
           py::arg("max_probes") = 0,
           "The first member in the key's order whose load is below factor times its fair share.\n\n"
           "shape: loads int64, indexed by member number, in any unit (tokens, requests), without this request; "
           "eligible\n"
           "likewise. errors: Error invalid_argument (factor not in 1..1000), ValueError (a member without an entry).")
      .def_property_readonly(
          "members",
          [](const HashRing& self) { return std::vector<RingMember>(self.members().begin(), self.members().end()); },
          "In the order of their ring_id's bytes.")
      .def_property_readonly("points", &HashRing::points)
      .def_property_readonly("memory_bytes", &HashRing::memory_bytes)
      .def(
          "shares",
          [](const HashRing& self) {
            py::dict out;
            const auto shares = self.shares();
            for (std::size_t i = 0; i < shares.size(); ++i)
              out[py::str(self.members()[i].ring_id)] = keys_of(shares[i]);
            return py::typing::Dict<py::str, py::int_>(out);
          },
          "ring_id -> exact number of the 2**64 keys.")
      .def("__len__", &HashRing::size)
      .def("__hash__",
           [](const HashRing& self) {
             return py::hash(py::make_tuple(self.size(), self.points(), self.options().seed));
           })
      .def(
          "__eq__", [](const HashRing& a, const HashRing& b) { return a == b; }, py::is_operator())
      .def("__repr__", [](const HashRing& self) {
        return "<warmroute.HashRing of " + std::to_string(self.size()) + " members, " + std::to_string(self.points()) +
               " points>";
      });
  bind_changes(ring);
  m.def("movement_between", &movement_between, py::arg("before"), py::arg("after"),
        "What moves when `after` replaces `before`.");
}

}  // namespace warmroute::python
