// Request: what friendly, batch and peek calls take; made once, routed often.
#include "request.hpp"

namespace warmroute::python {
namespace {

using Numbers = std::optional<std::vector<std::uint64_t>>;

std::unique_ptr<PyRequest> make_request(py::object ids, py::object blocks, std::string_view model,
                                        std::string_view session, std::string_view tenant, std::string_view adapter,
                                        std::string_view cache_salt, EnumArg<BlockKind> block_kind,
                                        std::int64_t input_tokens, std::int64_t prompt_bytes,
                                        std::int64_t max_output_tokens, std::uint32_t class_id, std::int32_t priority,
                                        std::int64_t deadline_ns, bool stream, const Numbers& excluded,
                                        std::optional<std::uint64_t> pinned, bool exact_pool) {
  auto self = std::make_unique<PyRequest>();
  self->keep_strings(model, session, tenant, adapter, cache_salt);
  self->keep_excluded(excluded);
  Request& r = self->view;
  if (!ids.is_none()) {
    self->ids.take(ids);
    r.token_ids = self->ids.span();
  }
  if (!blocks.is_none()) {
    self->blocks.take(blocks);
    r.blocks = as_blocks(self->blocks.span());
  }
  self->prompt = py::make_tuple(std::move(ids), std::move(blocks));
  r.block_kind = block_kind;
  r.input_tokens = input_tokens;
  r.prompt_bytes = prompt_bytes;
  r.max_output_tokens = max_output_tokens;
  r.class_id = class_id;
  r.priority = priority;
  r.deadline = Nanos{deadline_ns};
  r.stream = stream;
  r.exact_pool = exact_pool;
  if (pinned) r.pinned = replica_of(*pinned);
  return self;
}

constexpr const char* kRequestDoc =
    "One request: identity, prompt and wishes. Made once, routed, peeked at or explained often.\n\n"
    "shape: ids uint32[n], the first prompt's token ids; or blocks uint64[n], its block hashes, block 0 first (they "
    "win).\n"
    "Arrays are borrowed: do not change them while the Request is in use. units: counts are tokens, -1 = unknown.\n"
    "tenant: from the verified caller, never from the body. excluded: replicas a retry has tried. pinned: the only "
    "choice.\n"
    "exact_pool: model is a pool's name, and the pool '' does not stand in for it.";

}  // namespace

namespace {

void apply(Request& request, std::string_view name, py::handle value, std::vector<ReplicaId>& excluded) {
  if (name == "model") request.model = value.cast<std::string_view>();
  else if (name == "session") request.session = value.cast<std::string_view>();
  else if (name == "tenant") request.tenant = value.cast<std::string_view>();
  else if (name == "adapter") request.adapter = value.cast<std::string_view>();
  else if (name == "cache_salt") request.cache_salt = value.cast<std::string_view>();
  else if (name == "block_kind") request.block_kind = enum_of<BlockKind>(value);
  else if (name == "input_tokens") request.input_tokens = value.cast<std::int64_t>();
  else if (name == "prompt_bytes") request.prompt_bytes = value.cast<std::int64_t>();
  else if (name == "max_output_tokens") request.max_output_tokens = value.cast<std::int64_t>();
  else if (name == "class_id") request.class_id = value.cast<std::uint32_t>();
  else if (name == "priority") request.priority = value.cast<std::int32_t>();
  else if (name == "deadline_ns") request.deadline = Nanos{value.cast<std::int64_t>()};
  else if (name == "stream") request.stream = value.cast<bool>();
  else if (name == "exact_pool") request.exact_pool = value.cast<bool>();
  else if (name == "pinned") request.pinned = value.is_none() ? kNoReplica : replica_of(value.cast<std::uint64_t>());
  else if (name == "excluded") {
    excluded.clear();
    for (const py::handle number : value) excluded.push_back(replica_of(number.cast<std::uint64_t>()));
    request.excluded = excluded;
  } else {
    throw py::type_error("a request has no keyword '" + std::string(name) + "'");
  }
}

}  // namespace

void apply_keywords(Request& request, const py::kwargs& keywords, std::vector<ReplicaId>& excluded) {
  for (const auto& [key, value] : keywords) {
    const auto name = key.cast<std::string_view>();
    try {
      apply(request, name, value, excluded);
    } catch (const py::cast_error&) {
      throw py::type_error("the keyword '" + std::string(name) + "' does not take " +
                           py::repr(value).cast<std::string>());
    }
  }
}

void bind_request(py::module_& m) {
  py::class_<PyRequest>(m, "Request", kRequestDoc)
      .def(py::init(&make_request), py::arg("ids") = py::none(), py::arg("blocks") = py::none(), py::kw_only(),
           py::arg("model") = "", py::arg("session") = "", py::arg("tenant") = "", py::arg("adapter") = "",
           py::arg("cache_salt") = "", py::arg_v("block_kind", EnumArg<BlockKind>{}, "'tokens'"),
           py::arg("input_tokens") = kUnknown, py::arg("prompt_bytes") = kUnknown,
           py::arg("max_output_tokens") = kUnknown, py::arg("class_id") = 0, py::arg("priority") = 0,
           py::arg("deadline_ns") = 0, py::arg("stream") = false, py::arg("excluded") = std::nullopt,
           py::arg("pinned") = std::nullopt, py::arg("exact_pool") = false)
      .def_readonly("model", &PyRequest::model)
      .def_readonly("session", &PyRequest::session)
      .def_readonly("tenant", &PyRequest::tenant)
      .def_readonly("adapter", &PyRequest::adapter)
      .def_readonly("cache_salt", &PyRequest::cache_salt)
      .def_property_readonly("input_tokens", [](const PyRequest& self) { return self.view.input_tokens; })
      .def_property_readonly("max_output_tokens", [](const PyRequest& self) { return self.view.max_output_tokens; })
      .def("__repr__", [](const PyRequest& self) {
        const std::string prompt = !self.view.blocks.empty()
                                       ? std::to_string(self.view.blocks.size()) + " blocks"
                                       : std::to_string(self.view.token_ids.size()) + " token ids";
        return "<warmroute.Request of " + prompt + (self.model.empty() ? "" : " for '" + self.model + "'") + ">";
      });
}

}  // namespace warmroute::python
