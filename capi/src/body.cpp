// Request bodies.
#include <memory>
#include <string>

#include "policy.hpp"
#include "support.hpp"
#include "warmroute/ingest/request_body.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_body_parser {
  RequestBodyParser parser;
};

namespace {

const wr_body_options kOptionDefaults = WR_BODY_OPTIONS_INIT;

// The C callback behind the C++ one; lives as long as the call.
struct TokenizerTarget {
  wr_tokenizer_fn encode;
  void* user;
};
std::size_t encode_with(void* target, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  const auto* t = static_cast<const TokenizerTarget*>(target);
  return t->encode(t->user, str(prompt), out, capacity);
}

wr_status check(const Input<wr_body_options>& in, std::uint32_t api, wr_str body, wr_error* err) noexcept {
  if (!in) return in.refuse(err, "options is NULL");
  if (!readable(body) || !readable(in->tenant) || !readable(in->adapter)) {
    return null_argument(err, "body, tenant or adapter has a size and no data");
  }
  if (api > WR_API_CONVERSE) return fail(err, Code::out_of_range, "api is not one of WR_API_...");
  if (in->isolation > WR_ISOLATION_POOL)
    return fail(err, Code::out_of_range, "isolation is not one of WR_ISOLATION_...");
  return WR_STATUS_OK;
}

RequestBodyOptions options_of(const wr_body_options& o, TokenizerTarget& target) noexcept {
  RequestBodyOptions out;
  out.max_bytes = o.max_bytes;
  out.max_depth = o.max_depth;
  out.block_size = o.block_size;
  out.hash_seed = o.hash_seed;
  out.tenant = view(o.tenant);
  out.adapter = view(o.adapter);
  out.isolation = static_cast<Isolation>(o.isolation);
  target = {o.tokenizer, o.tokenizer_user};
  if (o.tokenizer != nullptr) out.tokenizer = {&target, encode_with};
  return out;
}

wr_body body_of(const ParsedBody& b) noexcept {
  wr_body out = WR_BODY_INIT;
  out.prompt_kind = static_cast<std::uint32_t>(b.kind);
  out.model = str(b.model);
  out.adapter = str(b.adapter);
  out.session = str(b.session);
  out.user = str(b.user);
  out.cache_salt = str(b.cache_salt);
  out.tenant = str(b.tenant);
  out.stream = b.stream;
  out.include_usage = b.include_usage;
  out.max_output_tokens = b.max_output_tokens.value_or(WR_UNKNOWN);
  out.block_hashes = reinterpret_cast<const std::uint64_t*>(b.blocks.data());
  out.block_count = b.blocks.size();
  out.block_kind = b.token_blocks ? WR_BLOCKS_TOKENS : WR_BLOCKS_TEXT;
  out.ids_from_body = b.ids_from_body;
  out.token_ids = b.token_ids.data();
  out.token_count = b.token_ids.size();
  out.prompt_count = b.prompt_count;
  out.input_tokens = b.input_tokens;
  out.prompt_bytes = b.prompt_bytes;
  out.all_token_ids = b.all_token_ids.data();
  out.all_token_count = b.all_token_ids.size();
  out.prompt_ends = b.prompt_ends.data();
  return out;
}

}  // namespace

extern "C" {

wr_status wr_api_for_path(wr_str path, uint32_t* api, wr_error* err) {
  if (api == nullptr || !readable(path)) return null_argument(err, "path or api is NULL");
  return guard(err, [&] {
    const auto found = api_for_path(view(path));
    if (!found) return fail(err, found.error());
    *api = static_cast<std::uint32_t>(*found);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_body_options_for(const wr_policy* policy, wr_body_options* options, wr_error* err) {
  const Input<wr_policy> in(policy, policy_defaults());
  if (!in) return in.refuse(err, "policy is NULL");
  if (!writable(options)) return null_argument(err, kBadOutput);
  if (in->isolation > WR_ISOLATION_POOL || in->block_size < 1 || in->block_size > kMaxBlockTokens) {
    return fail(err, Code::invalid_argument,
                "the policy's isolation or block_size is not valid: see wr_policy_validate");
  }
  options->block_size = in->block_size;
  options->hash_seed = in->hash_seed;
  options->isolation = in->isolation;
  return WR_STATUS_OK;
}

wr_status wr_body_parser_new(wr_body_parser** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_body_parser>().release();
    return WR_STATUS_OK;
  });
}

void wr_body_parser_free(wr_body_parser* parser) { delete parser; }

wr_status wr_body_parser_parse(wr_body_parser* parser, uint32_t api, wr_str body, const wr_body_options* options,
                               wr_body* out, wr_error* err) {
  if (parser == nullptr) return null_argument(err, "parser is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const Input<wr_body_options> in(options != nullptr ? options : &kOptionDefaults, kOptionDefaults);
  if (const wr_status bad = check(in, api, body, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    TokenizerTarget target{};
    const auto parsed = parser->parser.parse(static_cast<BodyApi>(api), view(body), options_of(*in, target));
    if (!parsed) return fail(err, parsed.error());
    write(out, body_of(*parsed));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_body_to_request(const wr_body* body, wr_request* out, wr_error* err) {
  const wr_body defaults = WR_BODY_INIT;
  const Input<wr_body> in(body, defaults);
  if (!in) return in.refuse(err, "body is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  wr_request r = WR_REQUEST_INIT;
  r.model = in->model;
  r.adapter = in->adapter;
  r.session = in->session;
  r.tenant = in->tenant;
  r.cache_salt = in->cache_salt;
  r.token_ids = in->token_ids;
  r.token_count = in->token_count;
  r.block_hashes = in->block_hashes;
  r.block_count = in->block_count;
  r.block_kind = in->block_kind;
  r.input_tokens = in->input_tokens;
  // Ids have no text behind them: their four bytes must not teach anyone how many bytes a token has.
  r.prompt_bytes = in->ids_from_body != 0 ? WR_UNKNOWN : static_cast<std::int64_t>(in->prompt_bytes);
  r.max_output_tokens = in->max_output_tokens;
  r.stream = in->stream;
  write(out, r);
  return WR_STATUS_OK;
}

wr_status wr_canonical_prompt(uint32_t api, wr_str body, const wr_body_options* options, uint8_t* buf, size_t cap,
                              size_t* needed, wr_error* err) {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  const Input<wr_body_options> in(options != nullptr ? options : &kOptionDefaults, kOptionDefaults);
  if (const wr_status bad = check(in, api, body, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    TokenizerTarget target{};
    const auto prompt = canonical_prompt(static_cast<BodyApi>(api), view(body), options_of(*in, target));
    if (!prompt) return fail(err, prompt.error());
    return give(*prompt, 0, reinterpret_cast<char*>(buf), cap, needed, err);
  });
}

}  // extern "C"
