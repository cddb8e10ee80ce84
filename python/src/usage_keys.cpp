// KeySet: whose key it is. Records come as warmroute.usage.KeyRecord; a verdict goes out with what a client may learn of it.
#include <algorithm>

#include "usage.hpp"

namespace warmroute::python {
namespace {

WallNanos wall_or(py::handle value, WallNanos otherwise) {
  return value.is_none() ? otherwise : WallNanos{value.cast<std::int64_t>()};
}

KeyDigest digest_of(py::handle source) {
  KeyDigest out;
  const auto bytes = source.attr("digest").cast<py::bytes>();
  const auto text = static_cast<std::string_view>(bytes);
  if (text.size() != out.bytes.size()) throw py::value_error("KeyDigest.digest: 32 bytes are needed");
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(out.bytes.data()));
  out.kind = enum_of<KeyDigestKind>(source.attr("kind"));
  out.pepper_version = source.attr("pepper_version").cast<std::uint32_t>();
  out.not_before = wall_or(source.attr("not_before_ns"), out.not_before);
  out.not_after = wall_or(source.attr("not_after_ns"), out.not_after);
  return out;
}

std::vector<KeyRecord> records_of(const py::typing::Iterable<py::object>& records) {
  std::vector<KeyRecord> out;
  for (const py::handle source : records) {
    KeyRecord& r = out.emplace_back();
    r.public_id = source.attr("public_id").cast<std::string>();
    r.key_id = source.attr("key_id").cast<std::string>();
    r.team_id = source.attr("team_id").cast<std::string>();
    r.version = source.attr("version").cast<std::uint64_t>();
    r.revoked = source.attr("revoked").cast<bool>();
    const py::object digests = source.attr("digests");
    for (const py::handle digest : digests) r.digests.push_back(digest_of(digest));
  }
  return out;
}

// A grant is true; everything else is false and has the verdict.
struct PyGrant {
  KeyVerdict verdict = KeyVerdict::unknown;
  KeyGrant grant;
};

PyGrant check_key(const KeySet& self, const BytesView& key, NowArg now_ns, NowArg wall_ns) {
  PyGrant out;
  out.verdict = self.check(key.text(), usage_time(now_ns, wall_ns), out.grant);
  return out;
}

void bind_grant(py::module_& m) {
  py::class_<PyGrant>(m, "KeyGrant",
                      "Whom a key belongs to. False where it was not accepted: then there is a verdict only.")
      .def_readonly("verdict", &PyGrant::verdict, "For our own logs; a client may learn `status` alone.")
      .def_property_readonly(
          "status", [](const PyGrant& self) { return key_verdict_status(self.verdict); },
          "200, 401 (the key), or 503 (our fault: stale set, pepper, digest).")
      .def_property_readonly(
          "key_id", [](const PyGrant& self) { return text_of(self.grant.key_id); }, "What the books call it.")
      .def_property_readonly("team_id", [](const PyGrant& self) { return text_of(self.grant.team_id); })
      .def_property_readonly("version", [](const PyGrant& self) { return self.grant.version; })
      .def_property_readonly(
          "generation", [](const PyGrant& self) { return self.grant.generation; }, "Of the set that said so.")
      .def("__bool__", [](const PyGrant& self) { return self.verdict == KeyVerdict::accepted; })
      .def("__repr__", [](const PyGrant& self) {
        const std::string verdict(key_verdict_name(self.verdict));
        return "<warmroute.usage.KeyGrant " +
               (self.verdict == KeyVerdict::accepted ? "of " + self.grant.key_id : verdict) + ">";
      });
}

void bind_changes(py::class_<KeySet>& c) {
  c.def(
       "_replace",
       [](KeySet& self, std::uint64_t generation, const py::typing::Iterable<py::object>& records, NowArg now_ns) {
         const std::vector<KeyRecord> all = records_of(records);
         check(without_gil([&] { return self.replace(generation, all, steady_time(now_ns)); }));
       },
       py::arg("generation"), py::arg("records"), py::arg("now_ns"))
      .def(
          "_apply",
          [](KeySet& self, std::uint64_t base, std::uint64_t generation,
             const py::typing::Iterable<py::object>& changes, NowArg now_ns) {
            const std::vector<KeyRecord> all = records_of(changes);
            check(without_gil([&] { return self.apply(base, generation, all, steady_time(now_ns)); }));
          },
          py::arg("base"), py::arg("generation"), py::arg("changes"), py::arg("now_ns"))
      .def(
          "_roll_back",
          [](KeySet& self, std::uint64_t from, std::uint64_t generation,
             const py::typing::Iterable<py::object>& records, NowArg now_ns) {
            const std::vector<KeyRecord> all = records_of(records);
            check(without_gil([&] { return self.roll_back(from, generation, all, steady_time(now_ns)); }));
          },
          py::arg("from_"), py::arg("generation"), py::arg("records"), py::arg("now_ns"))
      .def(
          "set_max_age",
          [](KeySet& self, std::int64_t max_age_ns, EnumArg<StaleKeys> on_stale) {
            self.set_max_age(Nanos{max_age_ns}, on_stale);
          },
          py::arg("max_age_ns"), py::arg("on_stale"), "From now on, instead of what the constructor said.")
      .def(
          "confirm",
          [](KeySet& self, std::uint64_t generation, NowArg now_ns) {
            check(without_gil([&] { return self.confirm(generation, steady_time(now_ns)); }));
          },
          py::arg("generation"), py::arg("now_ns") = std::nullopt,
          "Control was heard of and `generation` is still its newest. errors: Error stale: it is not ours.")
      .def(
          "revoke",
          [](KeySet& self, std::string_view public_id, std::optional<std::uint64_t> version) {
            check(without_gil([&] { return self.revoke(public_id, version.value_or(kRevokedForever)); }));
          },
          py::arg("public_id"), py::arg("version") = std::nullopt,
          "Revokes at once, beside control: everything up to `version`; None: for ever. Also before the key is "
          "known.\n\n"
          "errors: Error invalid_argument.");
}

}  // namespace

py::dict key_fields(const KeyRecord& record) {
  const KeyDigest open;
  const auto bound = [](WallNanos at, WallNanos none) {
    return at.value == none.value ? py::object(py::none()) : py::object(py::int_(at.value));
  };
  py::tuple digests(record.digests.size());
  for (std::size_t i = 0; i < record.digests.size(); ++i) {
    const KeyDigest& d = record.digests[i];
    py::dict row;
    row["digest"] = py::bytes(reinterpret_cast<const char*>(d.bytes.data()), d.bytes.size());
    row["kind"] = d.kind;
    row["pepper_version"] = d.pepper_version;
    row["not_before_ns"] = bound(d.not_before, open.not_before);
    row["not_after_ns"] = bound(d.not_after, open.not_after);
    digests[i] = row;
  }
  py::dict out;
  out["public_id"] = text_of(record.public_id);
  out["key_id"] = text_of(record.key_id);
  out["team_id"] = text_of(record.team_id);
  out["version"] = record.version;
  out["revoked"] = record.revoked;
  out["digests"] = digests;
  return out;
}

void bind_usage_keys(py::module_& m) {
  bind_grant(m);
  const KeySetOptions d;
  py::class_<KeySet> c(m, "KeySet", "See warmroute.usage.KeySet.");
  c.def(py::init([](std::int64_t max_age_ns, EnumArg<StaleKeys> on_stale) {
          return std::make_unique<KeySet>(KeySetOptions{Nanos{max_age_ns}, on_stale});
        }),
        py::kw_only(), py::arg("max_age_ns") = d.max_age.value,
        py::arg_v("on_stale", EnumArg<StaleKeys>{d.on_stale}, "'keep_serving'"))
      .def(
          "add_pepper",
          [](KeySet& self, std::uint32_t version, const BytesView& pepper) {
            check(without_gil([&] { return self.add_pepper(version, pepper.text()); }));
          },
          py::arg("version"), py::arg("pepper"),
          "It is wiped when the set is destroyed. errors: Error invalid_argument: shorter than 16 bytes; "
          "already_exists.");
  bind_changes(c);
  c.def("check", &check_key, py::arg("key"), py::kw_only(), py::arg("now_ns") = std::nullopt,
        py::arg("wall_ns") = std::nullopt,
        "Whose key it is. now_ns: for the set's age; wall_ns: for validity windows. Never raises for what a client "
        "sent.")
      .def(
          "age_ns", [](const KeySet& self, NowArg now_ns) { return self.age(steady_time(now_ns)).value; },
          py::arg("now_ns") = std::nullopt, "Since control was last heard of.")
      .def(
          "stale", [](const KeySet& self, NowArg now_ns) { return self.stale(steady_time(now_ns)); },
          py::arg("now_ns") = std::nullopt, "Older than max_age_ns, or nothing came yet.")
      .def_property_readonly("generation", &KeySet::generation)
      .def_property_readonly("revoked", &KeySet::revoked, "Tombstones.")
      .def_property_readonly("heap_bytes", &KeySet::heap_bytes)
      .def("__len__", &KeySet::size, "Keys that are not revoked.");
  m.def(
      "digest_of_key",
      [](const BytesView& key, EnumArg<KeyDigestKind> kind, std::uint32_t pepper_version, const BytesView& pepper) {
        const KeyDigest made = value_of(key_digest(key.text(), kind, pepper_version, pepper.text()));
        return py::bytes(reinterpret_cast<const char*>(made.bytes.data()), made.bytes.size());
      },
      py::arg("key"), py::arg("kind"), py::arg("pepper_version"), py::arg("pepper"));
}

}  // namespace warmroute::python
