// PrefixIndex and its Match: depths as NumPy views that the next match of the same object overwrites.
#include <memory>

#include "arrays.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute::python {
namespace {

constexpr std::size_t kReleaseBlocks = 256;  // a store of fewer takes less than two releases of the GIL

struct PyIndex {
  explicit PyIndex(PrefixIndexOptions options) : index(options) {}
  PrefixIndex index;
};

// Bound to its index for ever: its memory never moves, so that views of it stay valid.
struct PyMatch {
  std::shared_ptr<const PyIndex> owner;
  PrefixMatch match;
};

template <class Call>
auto index_released(std::size_t blocks, Call&& call) {
  if (blocks < kReleaseBlocks) return call();
  const ReleasedGil released;
  return call();
}

void store(PyIndex& self, std::uint64_t replica, const HashView& path, std::size_t first, EnumArg<Tier> tier) {
  check(index_released(path.size(),
                       [&] { return self.index.store(replica_of(replica), tier, as_blocks(path.span()), first); }));
}

std::size_t remove(PyIndex& self, std::uint64_t replica, const HashView& path, std::size_t first, EnumArg<Tier> tier) {
  return index_released(path.size(),
                        [&] { return self.index.remove(replica_of(replica), tier, as_blocks(path.span()), first); });
}

std::span<const EngineHash> as_ids(std::span<const std::uint64_t> ids) noexcept {
  static_assert(sizeof(EngineHash) == sizeof(std::uint64_t));
  return {reinterpret_cast<const EngineHash*>(ids.data()), ids.size()};
}

void store_event(PyIndex& self, std::uint64_t replica, std::optional<std::uint64_t> parent, const HashView& ids,
                 const HashView& blocks, EnumArg<Tier> tier) {
  const EngineHash parent_id{parent.value_or(0)};
  check(index_released(blocks.size(), [&] {
    return self.index.store_event(replica_of(replica), tier, parent ? &parent_id : nullptr, as_ids(ids.span()),
                                  as_blocks(blocks.span()));
  }));
}

std::shared_ptr<PyMatch> match(const std::shared_ptr<PyIndex>& self, const HashView& path,
                               const std::optional<std::shared_ptr<PyMatch>>& reused) {
  std::shared_ptr<PyMatch> out = reused.value_or(nullptr);
  if (out == nullptr) {
    out = std::make_shared<PyMatch>();
    out->owner = self;
  } else if (out->owner != self) {
    throw py::value_error("out is a Match of another index: a Match serves the index that made it");
  }
  self->index.match(as_blocks(path.span()), out->match);
  return out;
}

py::typing::Dict<py::str, py::int_> statistics(const PyIndex& self) {
  const PrefixIndexStatistics s = [&] {
    const ReleasedGil released;
    return self.index.statistics();
  }();
  py::dict out;
  out["blocks"] = s.blocks;
  out["memberships"] = s.memberships;
  out["nodes"] = s.nodes;
  out["bytes"] = s.bytes;
  out["max_bytes"] = s.max_bytes;
  out["evicted_memberships"] = s.evicted_memberships;
  out["evicted_blocks"] = s.evicted_blocks;
  out["refused_stores"] = s.refused_stores;
  out["clears"] = s.clears;
  return py::typing::Dict<py::str, py::int_>(out);
}

void bind_match(py::module_& m) {
  using Depths = py::array_t<std::uint32_t>;
  py::class_<PyMatch, std::shared_ptr<PyMatch>>(
      m, "Match",
      "The answer to one look-up. shape: uint32[slots], one depth per replica slot seen so far; units: leading "
      "blocks.\n\n"
      "The arrays are read-only views; the next match into the same object overwrites them.")
      .def_property_readonly(
          "device",
          [](const py::object& self) -> Depths {
            return array_view<std::uint32_t>(self.cast<PyMatch&>().match.device(), self);
          },
          "Blocks held on the device.")
      .def_property_readonly(
          "host",
          [](const py::object& self) -> Depths {
            return array_view<std::uint32_t>(self.cast<PyMatch&>().match.host(), self);
          },
          "On the device or in host memory.")
      .def_property_readonly(
          "disk",
          [](const py::object& self) -> Depths {
            return array_view<std::uint32_t>(self.cast<PyMatch&>().match.disk(), self);
          },
          "On any tier.")
      .def_property_readonly(
          "best", [](const PyMatch& self) { return self.match.best(); },
          "The deepest match of any replica on any tier.")
      .def_property_readonly(
          "has_lower_tiers", [](const PyMatch& self) { return self.match.has_lower_tiers(); },
          "Whether any lower tier was ever stored; if not, the three arrays are equal.")
      .def("__len__", [](const PyMatch& self) { return self.match.slots(); })
      .def("__repr__", [](const PyMatch& self) {
        return "<warmroute.Match of " + std::to_string(self.match.slots()) + " slots, best " +
               std::to_string(self.match.best()) + " blocks>";
      });
}

}  // namespace

void bind_index(py::module_& m) {
  bind_match(m);
  py::class_<PyIndex, std::shared_ptr<PyIndex>>(
      m, "PrefixIndex",
      "Which replica holds which leading blocks of a prompt, for all replicas at once and per tier.\n\n"
      "Replicas are small ints (slots) or the ints of Router.add_replica. Thread-safe under the GIL.")
      .def(py::init([](std::uint32_t max_replicas, std::size_t max_bytes) {
             return std::make_shared<PyIndex>(PrefixIndexOptions{max_replicas, max_bytes});
           }),
           py::kw_only(), py::arg("max_replicas") = 1024, py::arg("max_bytes") = std::size_t{1} << 30,
           "max_bytes: hard cap on the tree, enforced on insert, oldest leaves first.")
      .def("store", &store, py::arg("replica"), py::arg("path"), py::arg("first") = 0, py::kw_only(),
           py::arg_v("tier", EnumArg<Tier>{Tier::device}, "'device'"),
           "Blocks path[first:] are now held by the replica. shape: path uint64[n], the block hashes from block 0.\n\n"
           "errors: Error out_of_range (slot), stale (an older generation), capacity (no room).")
      .def("remove", &remove, py::arg("replica"), py::arg("path"), py::arg("first") = 0, py::kw_only(),
           py::arg_v("tier", EnumArg<Tier>{Tier::device}, "'device'"),
           "Blocks path[first:] are no longer held there. returns: memberships removed.")
      .def("store_event", &store_event, py::arg("replica"), py::arg("parent"), py::arg("ids"), py::arg("blocks"),
           py::kw_only(), py::arg_v("tier", EnumArg<Tier>{Tier::device}, "'device'"),
           "As store, the way engines say it: blocks follow the block that the engine calls parent (None: block 0).\n\n"
           "shape: ids and blocks uint64[n]. errors: as store; invalid_argument (sizes), not_found (parent).")
      .def(
          "remove_event",
          [](PyIndex& self, std::uint64_t replica, const HashView& ids, EnumArg<Tier> tier) {
            return index_released(
                ids.size(), [&] { return self.index.remove_event(replica_of(replica), tier, as_ids(ids.span())); });
          },
          py::arg("replica"), py::arg("ids"), py::kw_only(), py::arg_v("tier", EnumArg<Tier>{Tier::device}, "'device'"),
          "As remove, by the engine's names in any order; unknown ones are skipped. returns: memberships removed.")
      .def(
          "hold_event",
          [](PyIndex& self, std::uint64_t replica, const HashView& ids, EnumArg<Tier> tier) {
            return index_released(ids.size(),
                                  [&] { return self.index.hold_event(replica_of(replica), tier, as_ids(ids.span())); });
          },
          py::arg("replica"), py::arg("ids"), py::kw_only(), py::arg_v("tier", EnumArg<Tier>{Tier::device}, "'device'"),
          "Blocks that the engine calls so are held on `tier`, too (offloaded, say); unknown ones are skipped.\n\n"
          "shape: ids uint64[n]. returns: how many are known.")
      .def(
          "knows",
          [](PyIndex& self, std::uint64_t replica, std::uint64_t id) {
            return self.index.knows(replica_of(replica), EngineHash{id});
          },
          py::arg("replica"), py::arg("id"), "Whether a block is known by that replica's name for it.")
      .def(
          "clear", [](PyIndex& self, std::uint64_t replica) { self.index.clear(replica_of(replica)); },
          py::arg("replica"), "Forgets all that the replica held, in constant time.")
      .def("match", &match, py::arg("path"), py::arg("out") = std::nullopt,
           "How many leading blocks of path each replica holds. shape: path uint64[n].\n\n"
           "out: a Match of this index to use again, which allocates nothing; it is returned.")
      .def("statistics", &statistics, "Blocks, memberships, nodes, bytes and what was given up for the byte cap.")
      .def(
          "advance",
          [](PyIndex& self, std::size_t max_nodes) {
            const ReleasedGil released;
            self.index.advance(max_nodes);
          },
          py::arg("max_nodes") = 256, "Gives back memory of cleared replicas, looking at no more than max_nodes runs.");
}

}  // namespace warmroute::python
