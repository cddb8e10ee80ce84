// BodyParser, ParsedBody, canonical_prompt: request bodies read into what routing needs.
#include "body.hpp"

#include <algorithm>

namespace warmroute::python {
namespace {

// A release costs 200 ns; a body of this size is parsed in 2 us.
constexpr std::size_t kReleaseBytes = 4'096;

std::string_view keep(std::string& owner, std::string_view text) {
  owner = text;
  return owner;
}

class PyBodyParser {
 public:
  RequestBodyOptions options;
  py::object tokenizer = py::none();
  ParserPool parsers;

  std::unique_ptr<PyParsedBody> parse(const BytesView& body, EnumArg<BodyApi> api, std::string_view tenant,
                                      std::string_view adapter) {
    RequestBodyOptions o = options;
    o.tenant = tenant;
    o.adapter = adapter;
    const py::object callback = tokenizer;
    const ParserPool::Lease lease(parsers);
    return std::make_unique<PyParsedBody>(parse_body(*lease, api, body, o, callback));
  }
};

py::object text_or_none(const std::string& text) { return text.empty() ? py::object(py::none()) : py::str(text); }

RequestBodyOptions options_from(std::size_t max_bytes, std::uint32_t max_depth, std::uint32_t block_size,
                                std::uint64_t hash_seed, Isolation isolation) {
  RequestBodyOptions options;
  options.max_bytes = max_bytes;
  options.max_depth = max_depth;
  options.block_size = block_size;
  options.hash_seed = hash_seed;
  options.isolation = isolation;
  return options;
}

void bind_parsed(py::module_& m) {
  using OptionalText = py::typing::Optional<py::str>;
  const auto text = [](std::string PyParsedBody::*member) {
    return [member](const PyParsedBody& self) { return OptionalText(text_or_none(self.*member)); };
  };
  py::class_<PyParsedBody>(
      m, "ParsedBody",
      "One body, read: who asks for which model, and the prompt as block hashes. Keeps no prompt text.")
      .def_property_readonly("model", text(&PyParsedBody::model), "None where the body has none; likewise below.")
      .def_property_readonly("adapter", text(&PyParsedBody::adapter), "lora_path, or the caller's.")
      .def_property_readonly("session", text(&PyParsedBody::session),
                             "session_id, else session_params.id, conversation, prompt_cache_key.")
      .def_property_readonly("user", text(&PyParsedBody::user))
      .def_property_readonly("cache_salt", text(&PyParsedBody::cache_salt))
      .def_property_readonly("tenant", text(&PyParsedBody::tenant), "The caller's.")
      .def_property_readonly("stream", [](const PyParsedBody& self) { return self.view.stream; })
      .def_property_readonly("include_usage", [](const PyParsedBody& self) { return self.view.include_usage; })
      .def_property_readonly(
          "max_output_tokens", [](const PyParsedBody& self) { return self.view.max_output_tokens; },
          "None: no limit named, or -1.")
      .def_property_readonly("kind", [](const PyParsedBody& self) { return self.view.kind; })
      .def_property_readonly("prompt_count", [](const PyParsedBody& self) { return self.view.prompt_count; })
      .def_property_readonly(
          "blocks",
          [](const py::object& self) -> py::array_t<std::uint64_t> {
            return array_view<std::uint64_t>(std::span<const BlockHash>(self.cast<PyParsedBody&>().blocks), self);
          },
          "Block hashes of the first prompt, whole blocks. shape: uint64[n], read-only.")
      .def_property_readonly(
          "token_blocks", [](const PyParsedBody& self) { return self.view.token_blocks; },
          "Blocks are of token ids; else of text.")
      .def_property_readonly(
          "all_token_ids",
          [](const py::object& self) -> py::array_t<std::uint32_t> {
            return array_view<std::uint32_t>(std::span<const std::uint32_t>(self.cast<PyParsedBody&>().all_token_ids),
                                             self);
          },
          "Of all prompts, one after another, if known. shape: uint32[n], read-only.")
      .def_property_readonly(
          "prompt_ends",
          [](const py::object& self) -> py::array_t<std::uint64_t> {
            return array_view<std::uint64_t>(std::span<const std::uint64_t>(self.cast<PyParsedBody&>().prompt_ends),
                                             self);
          },
          "Prompt i is all_token_ids[prompt_ends[i-1]:prompt_ends[i]].")
      .def_property_readonly("ids_from_body", [](const PyParsedBody& self) { return self.view.ids_from_body; })
      .def_property_readonly(
          "input_tokens",
          [](const PyParsedBody& self) -> std::optional<std::int64_t> {
            if (self.view.input_tokens == kUnknown) return std::nullopt;
            return self.view.input_tokens;
          },
          "Sum over all prompts; None unless ids are known.")
      .def_property_readonly(
          "prompt_bytes", [](const PyParsedBody& self) { return self.view.prompt_bytes; },
          "Canonical bytes, sum over all prompts.")
      .def("__repr__", [](const PyParsedBody& self) {
        return "<warmroute.ParsedBody for '" + self.model + "': " + std::to_string(self.blocks.size()) +
               (self.view.token_blocks ? " token blocks>" : " text blocks>");
      });
}

int traverse_parser(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!py::detail::is_holder_constructed(self)) return 0;
  Py_VISIT(py::cast<PyBodyParser&>(py::handle(self)).tokenizer.ptr());
  return 0;
}
int clear_parser(PyObject* self) {
  if (py::detail::is_holder_constructed(self)) py::cast<PyBodyParser&>(py::handle(self)).tokenizer = py::none();
  return 0;
}
void setup_parser_gc(PyHeapTypeObject* heap) {
  heap->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  heap->ht_type.tp_traverse = &traverse_parser;
  heap->ht_type.tp_clear = &clear_parser;
}

constexpr const char* kParserDoc =
    "Reads bodies of OpenAI chat, completions, responses, embeddings, of Anthropic messages, Gemini and Bedrock "
    "Converse. Thread-safe.\n\n"
    "tokenizer: called with the canonical prompt (bytes), gives token ids (a uint32 array, or any sequence of ints, "
    "slower);\n"
    "None: blocks are of text, unless the body has ids. block_size, hash_seed, isolation: as the router's policy has "
    "them\n"
    "(Router.parse_body takes them from there).";

void bind_parser(py::module_& m) {
  const RequestBodyOptions d;
  py::class_<PyBodyParser>(m, "BodyParser", kParserDoc, py::custom_type_setup(&setup_parser_gc))
      .def(py::init([](TokenizerCallback tokenizer, std::size_t max_bytes, std::uint32_t max_depth,
                       std::uint32_t block_size, std::uint64_t hash_seed, EnumArg<Isolation> isolation) {
             auto self = std::make_unique<PyBodyParser>();
             self->options = options_from(max_bytes, max_depth, block_size, hash_seed, isolation);
             self->tokenizer = object_or_none(std::move(tokenizer));
             return self;
           }),
           py::arg("tokenizer") = std::nullopt, py::kw_only(), py::arg("max_bytes") = d.max_bytes,
           py::arg("max_depth") = d.max_depth, py::arg("block_size") = d.block_size, py::arg("hash_seed") = d.hash_seed,
           py::arg_v("isolation", EnumArg<Isolation>{d.isolation}, "'salt'"))
      .def("parse", &PyBodyParser::parse, py::arg("body"), py::arg_v("api", EnumArg<BodyApi>{}, "'chat'"),
           py::kw_only(), py::arg("tenant") = "", py::arg("adapter") = "",
           "errors: Error invalid_json, invalid_utf8, invalid_unicode, too_deep, too_large, not_an_object, "
           "missing_field,\n"
           "wrong_type, value_out_of_range, invalid_value, empty_prompt, each with .offset in bytes; invalid_argument "
           "(options);\n"
           "and whatever the tokenizer raises. Long bodies are read without the GIL.");
}

}  // namespace

std::size_t TokenizerCall::encode(void* user, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  auto& self = *static_cast<TokenizerCall*>(user);
  if (!self.called_) {  // asked again for want of room, the ids are here already
    const AcquiredGil acquired;
    self.called_ = true;
    try {
      self.call(prompt);
    } catch (...) {
      self.error_ = std::current_exception();
      self.ids_.clear();
    }
  }
  if (self.ids_.size() <= capacity) std::copy(self.ids_.begin(), self.ids_.end(), out);
  return self.ids_.size();
}

void TokenizerCall::call(std::string_view prompt) {
  const py::bytes bytes(prompt.data(), prompt.size());
  const py::object result = unless_ending([&]() -> py::object { return callable_(bytes); });
  if (py::isinstance<py::array>(result) || (PyObject_CheckBuffer(result.ptr()) != 0 && !PyBytes_Check(result.ptr()))) {
    TokenView view;
    view.take(result);
    ids_.assign(view.span().begin(), view.span().end());
    return;
  }
  try {
    ids_ = result.cast<std::vector<std::uint32_t>>();
  } catch (const py::cast_error&) {
    throw py::type_error("the tokenizer must return a uint32 array or a sequence of ints in 0..2**32-1");
  }
}

ParsedBody parse_body(RequestBodyParser& parser, BodyApi api, const BytesView& body, RequestBodyOptions options,
                      py::handle tokenizer) {
  TokenizerCall call(tokenizer);
  options.tokenizer = call.tokenizer();
  const bool release = body.text().size() >= kReleaseBytes;
  std::string copy;
  std::string_view text = body.text();
  if (body.is_mutable() && (release || !tokenizer.is_none())) text = copy = text;
  auto parsed = [&] {
    if (!release) return parser.parse(api, text, options);
    const ReleasedGil released;
    return parser.parse(api, text, options);
  }();
  call.rethrow();
  return value_of(std::move(parsed));
}

PyParsedBody::PyParsedBody(const ParsedBody& parsed)
    : blocks(parsed.blocks.begin(), parsed.blocks.end()),
      all_token_ids(parsed.all_token_ids.begin(), parsed.all_token_ids.end()),
      prompt_ends(parsed.prompt_ends.begin(), parsed.prompt_ends.end()),
      view(parsed) {
  view.model = keep(model, parsed.model);
  view.adapter = keep(adapter, parsed.adapter);
  view.session = keep(session, parsed.session);
  view.user = keep(user, parsed.user);
  view.cache_salt = keep(cache_salt, parsed.cache_salt);
  view.tenant = keep(tenant, parsed.tenant);
  view.blocks = blocks;
  view.token_ids = std::span(all_token_ids).first(parsed.token_ids.size());
  view.all_token_ids = all_token_ids;
  view.prompt_ends = {};
}

void bind_body(py::module_& m) {
  bind_parsed(m);
  bind_parser(m);
  m.def(
      "api_for_path", [](std::string_view path) { return value_of(api_for_path(path)); }, py::arg("path"),
      "The BodyApi whose path `path` ends with, e.g. '/v1/chat/completions'. errors: Error not_found.");
  m.def(
      "canonical_prompt",
      [](const BytesView& body, EnumArg<BodyApi> api) {
        return py::bytes(value_of(canonical_prompt(api, body.text())));
      },
      py::arg("body"), py::arg_v("api", EnumArg<BodyApi>{}, "'chat'"),
      "The first prompt's canonical bytes: what text blocks are cut from and what a tokenizer is given.\n\nerrors: as "
      "BodyParser.parse.");
}

}  // namespace warmroute::python
