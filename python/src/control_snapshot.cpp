// Signatures and snapshots: who may say what control says, and the document itself.
#include <algorithm>

#include "control.hpp"
#include "warmroute/control/signature.hpp"

namespace warmroute::python {
namespace {

py::bytes bytes_of(const std::array<std::uint8_t, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::array<std::uint8_t, 32> array_of(const BytesView& bytes, const char* what) {
  if (bytes.text().size() != 32) throw py::value_error(std::string(what) + ": 32 bytes are needed");
  std::array<std::uint8_t, 32> out{};
  std::copy_n(bytes.text().data(), out.size(), reinterpret_cast<char*>(out.data()));
  return out;
}

void bind_keys(py::module_& m) {
  py::class_<VerifyingKey>(m, "VerifyingKey", "A public key that may sign snapshots: what a process has to trust.")
      .def(py::init([](std::string key_id, const BytesView& public_key) {
             const auto bytes = array_of(public_key, "public_key");
             (void)value_of(verifying_key_pem({key_id, bytes}));
             return VerifyingKey{std::move(key_id), bytes};
           }),
           py::arg("key_id"), py::arg("public_key"), "errors: ValueError: not 32 bytes; Error internal: no such point.")
      .def_static(
          "parse",
          [](std::string_view text, std::string_view key_id) { return value_of(parse_verifying_key(text, key_id)); },
          py::arg("text"), py::arg("key_id") = "",
          "PEM, or 64 hex digits. key_id '': made of the key, on both sides alike. errors: Error malformed, "
          "invalid_argument.")
      .def_property_readonly("key_id", [](const VerifyingKey& self) { return text_of(self.key_id); })
      .def_property_readonly(
          "public_key", [](const VerifyingKey& self) { return bytes_of(self.public_key); }, "32 bytes.")
      .def(
          "pem", [](const VerifyingKey& self) { return value_of(verifying_key_pem(self)); }, "To publish.")
      .def(
          "__eq__", [](const VerifyingKey& a, const VerifyingKey& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const VerifyingKey& self) { return py::hash(bytes_of(self.public_key)); })
      .def("__repr__", [](const VerifyingKey& self) { return "<warmroute.control.VerifyingKey " + self.key_id + ">"; });
  py::class_<SigningKey>(m, "SigningKey",
                         "A private Ed25519 key; wiped when it goes. Its repr and errors never show it.")
      .def_static(
          "generate", [](std::string_view key_id) { return value_of(generate_signing_key(key_id)); },
          py::arg("key_id") = "", "A new one of OpenSSL's random bytes. errors: Error invalid_argument, internal.")
      .def_static(
          "parse",
          [](std::string_view text, std::string_view key_id) { return value_of(parse_signing_key(text, key_id)); },
          py::arg("text"), py::arg("key_id") = "",
          "PEM (PKCS #8, as `openssl genpkey -algorithm ed25519` writes it), or 64 hex digits.\n\n"
          "errors: Error malformed, invalid_argument.")
      .def_static(
          "from_seed",
          [](const BytesView& seed, std::string_view key_id) {
            return value_of(SigningKey::from_seed(array_of(seed, "seed"), key_id));
          },
          py::arg("seed"), py::arg("key_id") = "", "The 32 bytes of RFC 8032.")
      .def_property_readonly("key_id", [](const SigningKey& self) { return text_of(self.key_id()); })
      .def_property_readonly("verifying_key", [](const SigningKey& self) { return self.public_key(); })
      .def(
          "pem", [](const SigningKey& self) { return value_of(signing_key_pem(self)); },
          "To keep; whoever has it can sign.")
      .def("__repr__", [](const SigningKey& self) { return "<warmroute.control.SigningKey " + self.key_id() + ">"; });
}

void bind_signatures(py::module_& m) {
  m.def(
      "sign_snapshot",
      [](const JsonText& payload, const SigningKey& key) {
        const auto file = value_of(sign_snapshot(payload.text(), key));
        return py::bytes(file.data(), file.size());
      },
      py::arg("payload"), py::arg("key"),
      "Envelope and payload: what to write to a file. payload: JSON, or the dict of it. errors: Error internal.");
  m.def(
      "verify_snapshot",
      [](const BytesView& bytes, const std::vector<VerifyingKey>& trust, bool allow_unsigned) {
        const auto inside = value_of(verify_snapshot(bytes.text(), {trust, allow_unsigned}));
        return std::make_pair(py::bytes(inside.payload.data(), inside.payload.size()), inside.key_id);
      },
      py::arg("bytes"), py::arg("trust"), py::kw_only(), py::arg("allow_unsigned") = false,
      "(payload, who signed it: '' for nobody). Several keys: whichever the envelope names.\n\n"
      "errors: Error malformed, unsupported; not_found: a signer who is not trusted; invalid_value: the signature does "
      "not hold, or there must be one.");
  m.def(
      "replace_file",
      [](const py::object& path, const BytesView& bytes, unsigned mode) {
        const auto where = py::module_::import("os").attr("fspath")(path).cast<std::string>();
        const std::string text(bytes.text());
        check(without_gil([&] { return replace_file(where, text, mode); }));
      },
      py::arg("path"), py::arg("bytes"), py::kw_only(), py::arg("mode") = 0600,
      "Replaces a file as a whole: written beside it, synced, renamed; readers see the old or the new one. errors: "
      "Error io: the old one stays.");
}

// warmroute.control.SnapshotError, with each fault by itself.
[[noreturn]] void raise_faults(const Error& error, const std::vector<SnapshotFault>& faults) {
  py::tuple list(faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i)
    list[i] = py::make_tuple(text_of(faults[i].path), text_of(faults[i].what));
  const py::object type = py::module_::import("warmroute._error").attr("SnapshotError");
  const py::object instance = type(text_of(error.message), std::string(code_name(error.code)),
                                   static_cast<std::int32_t>(error.code), py::none(), list);
  PyErr_SetObject(type.ptr(), instance.ptr());
  throw py::error_already_set();
}

PySnapshot parse(const JsonText& payload, std::size_t max_bytes, std::size_t max_keys, std::size_t max_faults,
                 const std::optional<Policy>& base_policy) {
  std::vector<SnapshotFault> faults;
  SnapshotOptions options;
  options.max_bytes = max_bytes;
  options.max_keys = max_keys;
  options.max_faults = max_faults;
  if (base_policy) options.base_policy = *base_policy;
  options.faults = &faults;
  const auto read = [&](std::string_view text) { return parse_snapshot(text, options); };
  auto parsed = payload.dumped.empty() ? with_bytes(payload.bytes, read) : read(payload.dumped);
  if (!parsed && parsed.code() == Code::invalid_argument) raise_faults(parsed.error(), faults);
  return {std::make_shared<const Snapshot>(value_of(std::move(parsed)))};
}

py::typing::List<AnyDict> limits_of(const PySnapshot& self) {
  py::list out;
  for (const SnapshotLimits& each : self.snapshot->limits) {
    py::dict row;
    row["dimension"] = text_of(each.dimension);
    row["value"] = each.value ? py::object(text_of(*each.value)) : py::object(py::none());
    row["limits"] = spec_dicts(each.limits);
    out.append(row);
  }
  return py::typing::List<AnyDict>(out);
}

void bind_document(py::module_& m) {
  const SnapshotOptions d;
  py::class_<PySnapshot> c(m, "Snapshot", "See warmroute.control.Snapshot.");
  c.def_property_readonly("generation", [](const PySnapshot& self) { return self.snapshot->generation; })
      .def_property_readonly("issued_at_ns", [](const PySnapshot& self) { return self.snapshot->issued_at.value; })
      .def_property_readonly("max_age_ns", [](const PySnapshot& self) { return self.snapshot->max_age.value; })
      .def_property_readonly("on_expired", [](const PySnapshot& self) { return self.snapshot->on_expired; })
      .def_property_readonly("policy", [](const PySnapshot& self) { return self.snapshot->policy; })
      .def_property_readonly("key_count", [](const PySnapshot& self) { return self.snapshot->keys.size(); })
      .def("_keys",
           [](const PySnapshot& self) {
             py::list out;
             for (const KeyRecord& key : self.snapshot->keys) out.append(key_fields(key));
             return py::typing::List<AnyDict>(out);
           })
      .def("_teams",
           [](const PySnapshot& self) {
             py::list out;
             for (const SnapshotTeam& team : self.snapshot->teams)
               out.append(py::make_tuple(text_of(team.team_id), text_of(team.name)));
             return py::typing::List<py::typing::Tuple<py::str, py::str>>(out);
           })
      .def("_limits", &limits_of)
      .def("_prices",
           [](const PySnapshot& self) {
             const SnapshotPrices& p = self.snapshot->prices;
             py::dict out;
             out["file"] = text_of(p.file);
             out["file_sha256"] = text_of(p.file_sha256);
             out["overrides"] = text_of(p.overrides);
             return AnyDict(out);
           })
      .def("_aliases", [](const PySnapshot& self) { return self.snapshot->aliases; })
      .def("_forced_rollback",
           [](const PySnapshot& self) -> std::optional<std::pair<std::uint64_t, std::string>> {
             const auto& back = self.snapshot->forced_rollback;
             if (!back) return std::nullopt;
             return std::make_pair(back->from, back->reason);
           })
      .def(
          "json",
          [](const PySnapshot& self) { return text_of(without_gil([&] { return write_snapshot(*self.snapshot); })); },
          "The document; parsed again it is equal, and what is equal is written alike. One key, team or scope per "
          "line.");
  m.def("parse_snapshot", &parse, py::arg("payload"), py::kw_only(), py::arg("max_bytes") = d.max_bytes,
        py::arg("max_keys") = d.max_keys, py::arg("max_faults") = d.max_faults, py::arg("base_policy") = std::nullopt);
}

}  // namespace

void bind_control_snapshot(py::module_& m) {
  bind_keys(m);
  bind_signatures(m);
  bind_document(m);
}

}  // namespace warmroute::python
