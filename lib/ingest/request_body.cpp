// RequestBodyParser: checks of the whole body, the members that all APIs share, blocks of the first prompt.
#include "warmroute/ingest/request_body.hpp"

#include <array>
#include <limits>

#include "ingest/json_text.hpp"
#include "ingest/request_body_impl.hpp"
#include "simdjson.h"

namespace warmroute {
namespace {

using ingest::BodyReader;
using ingest::kNoNode;
using ingest::NodeIndex;
using ingest::NodeKind;
using ingest::Slot;

constexpr std::size_t kKeepBodyBytes = std::size_t{16} << 20;
constexpr std::uint64_t kExtraKeySeed = 3;  // kinds of block_seed(): 0 adapter, 1 salt, 2 isolation key
constexpr std::string_view kBom = "\xef\xbb\xbf";

// Only after the quick check has said no: where is the first byte that is not UTF-8?
std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t good = 0;
  std::size_t bad = text.size();
  while (bad - good >
         1) {  // a cut inside a character makes a valid prefix invalid, so go back to where a character begins
    std::size_t middle = good + (bad - good) / 2;
    while (middle > good && (static_cast<unsigned char>(text[middle]) & 0xc0) == 0x80) --middle;
    if (middle == good) break;
    if (simdjson::validate_utf8(text.data() + good, middle - good)) {
      good = middle;
    } else {
      bad = middle;
    }
  }
  return good;
}

bool is_blank_key(const BodyReader& r, NodeIndex key) {
  return r.tape.kind(key) == NodeKind::array ? r.tape.empty(key) : r.tape.view(key).empty();
}

bool ends_with_path(std::string_view path, std::string_view end) {
  return path.size() >= end.size() && path.substr(path.size() - end.size()) == end;
}

}  // namespace

Result<BodyApi> api_for_path(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  if (ends_with_path(path, "/v1/chat/completions")) return BodyApi::chat;
  if (ends_with_path(path, "/v1/completions")) return BodyApi::completions;
  if (ends_with_path(path, "/v1/responses")) return BodyApi::responses;
  if (ends_with_path(path, "/v1/embeddings")) return BodyApi::embeddings;
  if (ends_with_path(path, "/v1/messages")) return BodyApi::messages;
  // These name the model in the path.
  if (ends_with_path(path, ":generateContent") || ends_with_path(path, ":streamGenerateContent"))
    return BodyApi::gemini;
  if (ends_with_path(path, "/converse") || ends_with_path(path, "/converse-stream")) return BodyApi::converse;
  return Error{Code::not_found,
               "no request format is known for this path: /v1/chat/completions, /v1/completions, /v1/responses, "
               "/v1/embeddings, /v1/messages, Gemini's :generateContent and Bedrock's /converse are"};
}

bool RequestBodyParser::Impl::check(BodyApi api, std::string_view body, const RequestBodyOptions& options) {
  const std::size_t limit = std::min<std::size_t>(options.max_bytes, std::numeric_limits<std::uint32_t>::max());
  if (body.size() > limit) {
    error = {Code::too_large,
             "the body has " + std::to_string(body.size()) + " bytes, " + std::to_string(limit) + " are allowed",
             limit};
    return false;
  }
  if (options.block_size == 0 || options.block_size > kMaxBlockTokens) {
    error = {Code::invalid_argument, "block_size must be 1..512 tokens", kNoOffset};
    return false;
  }
  if (!body.empty() && !simdjson::validate_utf8(body.data(), body.size())) {
    error = {Code::invalid_utf8, "the body is not UTF-8 (UTF-16 is not accepted)", first_invalid_utf8(body)};
    return false;
  }
  const std::size_t skipped = body.substr(0, kBom.size()) == kBom ? kBom.size() : 0;
  const std::uint32_t depth = std::min(options.max_depth, kMaxBodyDepth);
  return tape.build(body, skipped, depth, ingest::find_slot, &api, error);
}

// The decoded string, kept until the next body. `hints` was given room for all of them.
std::string_view RequestBodyParser::Impl::keep(BodyReader& reader, NodeIndex string) {
  if (reader.blank(string)) return {};
  const std::size_t start = hints.size();
  hints.append(reader.tape.view(string));
  return hints.from(start);
}

bool RequestBodyParser::Impl::read_session(BodyReader& r, ParsedBody& out) {
  static constexpr std::array<std::string_view, 1> kId{"id"};
  std::array<NodeIndex, 1> params_id{kNoNode};
  std::array<NodeIndex, 1> conversation_id{kNoNode};
  const NodeIndex params = r.member(Slot::session_params);
  if (!r.is_object(params, "session_params")) return false;
  if (params != kNoNode) r.tape.collect(params, kId, params_id);
  NodeIndex conversation = r.member(Slot::conversation);
  if (conversation != kNoNode && r.tape.kind(conversation) == NodeKind::object) {
    r.tape.collect(conversation, kId, conversation_id);
    if (!r.is_string(conversation_id[0], "conversation.id")) return false;
    conversation = conversation_id[0];
  }
  const NodeIndex session = r.member(Slot::session_id);
  const NodeIndex cache_key = r.member(Slot::prompt_cache_key);
  if (!r.is_string(session, "session_id") || !r.is_string(params_id[0], "session_params.id") ||
      !r.is(conversation, NodeKind::string, "conversation", "a string or an object with an id") ||
      !r.is_string(cache_key, "prompt_cache_key")) {
    return false;
  }
  for (const NodeIndex candidate : {session, params_id[0], conversation, cache_key}) {
    if (r.blank(candidate)) continue;
    out.session = keep(r, candidate);
    break;
  }
  return true;
}

bool RequestBodyParser::Impl::read_user(BodyReader& r, ParsedBody& out) {
  if (r.api() == BodyApi::messages) {
    const NodeIndex metadata = r.member(Slot::metadata);
    if (!r.is_object(metadata, "metadata")) return false;
    if (metadata == kNoNode) return true;
    static constexpr std::array<std::string_view, 1> kNames{"user_id"};
    std::array<NodeIndex, 1> m;
    r.tape.collect(metadata, kNames, m);
    if (!r.is_string(m[0], "metadata.user_id")) return false;
    out.user = keep(r, m[0]);
    return true;
  }
  const NodeIndex user = r.member(Slot::user);
  const NodeIndex safety = r.member(Slot::safety_identifier);
  if (!r.is_string(user, "user") || !r.is_string(safety, "safety_identifier")) return false;
  out.user = keep(r, r.blank(user) ? safety : user);
  return true;
}

bool RequestBodyParser::Impl::read_limit(BodyReader& r, NodeIndex node, std::string_view name, ParsedBody& out) {
  if (node == kNoNode) return true;
  if (!r.is(node, NodeKind::numbers, name, "an integer")) return false;
  const ingest::Integer n = ingest::parse_integer(r.tape.view(node));
  if (n.status == ingest::IntegerStatus::fraction) return r.fail_type(node, name, "an integer");
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool unlimited = n.negative && n.magnitude == 1 && n.status == ingest::IntegerStatus::ok;
  if (!unlimited && (n.negative || n.status == ingest::IntegerStatus::overflow || n.magnitude > kMax)) {
    return r.fail(Code::value_out_of_range, node, name, "must be -1 (no limit) or 0..9223372036854775807");
  }
  if (!out.max_output_tokens) out.max_output_tokens = unlimited ? -1 : static_cast<std::int64_t>(n.magnitude);
  return true;
}

bool RequestBodyParser::Impl::read_limits(BodyReader& r, ParsedBody& out) {
  // The first that is there counts, all of them are checked.
  for (const Slot slot : {Slot::max_completion_tokens, Slot::max_tokens, Slot::max_output_tokens}) {
    if (!read_limit(r, r.member(slot), ingest::slot_name(slot), out)) return false;
  }
  for (const Slot slot : {Slot::generation_config_camel, Slot::generation_config, Slot::inference_config}) {
    const NodeIndex config = r.member(slot);
    if (!r.is_object(config, ingest::slot_name(slot))) return false;
    if (config == kNoNode) continue;
    static constexpr std::array<std::string_view, 3> kNames{"maxOutputTokens", "max_output_tokens", "maxTokens"};
    std::array<NodeIndex, kNames.size()> m;
    r.tape.collect(config, kNames, m);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      const bool here = (i == 2) == (slot == Slot::inference_config);
      if (here && !read_limit(r, m[i], kNames[i], out)) return false;
    }
  }
  if (out.max_output_tokens == -1) out.max_output_tokens.reset();
  return true;
}

bool RequestBodyParser::Impl::read_hints(BodyReader& r, const RequestBodyOptions& options, ParsedBody& out) {
  std::size_t room = 0;
  for (const Slot slot :
       {Slot::model, Slot::session_id, Slot::session_params, Slot::conversation, Slot::prompt_cache_key, Slot::user,
        Slot::safety_identifier, Slot::metadata, Slot::cache_salt, Slot::lora_path}) {
    if (const NodeIndex node = r.member(slot); node != kNoNode) room += r.tape.view(node).size();
  }
  hints.reset(kKeepBodyBytes);
  hints.reserve_more(room);

  const NodeIndex model = r.member(Slot::model);
  const NodeIndex salt = r.member(Slot::cache_salt);
  const NodeIndex lora = r.member(Slot::lora_path);
  if (!r.is_string(model, "model") || !r.is_string(salt, "cache_salt") || !r.is_string(lora, "lora_path")) return false;
  if (salt != kNoNode && r.blank(salt)) {
    return r.fail(Code::invalid_value, salt, "cache_salt", "must not be empty: leave it out to share cached blocks");
  }
  out.model = keep(r, model);
  out.cache_salt = keep(r, salt);
  out.adapter = options.adapter.empty() ? keep(r, lora) : options.adapter;
  out.tenant = options.tenant;
  if (const NodeIndex stream = r.member(Slot::stream); stream != kNoNode) {
    out.stream = r.tape.kind(stream) == NodeKind::true_value;
    if (!out.stream && r.tape.kind(stream) != NodeKind::false_value)
      return r.fail_type(stream, "stream", "true or false");
  }
  // Read, but not relied on: the engine says what is wrong with it.
  if (const NodeIndex so = r.member(Slot::stream_options); so != kNoNode && r.tape.kind(so) == NodeKind::object) {
    static constexpr std::array<std::string_view, 1> kNames{"include_usage"};
    std::array<NodeIndex, 1> m;
    r.tape.collect(so, kNames, m);
    out.include_usage = m[0] != kNoNode && r.tape.kind(m[0]) == NodeKind::true_value;
  }
  if (const NodeIndex key = r.member(Slot::extra_key);
      key != kNoNode && r.tape.kind(key) != NodeKind::array && r.tape.kind(key) != NodeKind::string) {
    return r.fail_type(key, "extra_key", "a string or a list of strings");
  }
  return read_session(r, out) && read_user(r, out) && read_limits(r, out);
}

bool RequestBodyParser::Impl::tokenize(const Tokenizer& tokenizer, std::string_view prompt) {
  ids.room(prompt.size() / 4 + 16);  // English has about four bytes a token; others are asked again
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::size_t capacity = ids.capacity_left();
    const std::size_t count = tokenizer.encode(tokenizer.user, prompt, ids.room(0), capacity);
    if (count <= capacity) {
      ids.take(count);
      ids.end_prompt();
      return true;
    }
    ids.room(count);
  }
  error = {Code::internal, "the tokenizer asked for more room twice for one prompt", kNoOffset};
  return false;
}

// A text prompt lies in `canonical` from `start` on: its ids if there is a tokenizer; only the first prompt's text
// stays.
bool RequestBodyParser::Impl::add_text_prompt(const RequestBodyOptions& options, std::size_t start, bool first) {
  if (options.tokenizer.encode != nullptr && !tokenize(options.tokenizer, canonical.stream().substr(start)))
    return false;
  if (!first) canonical.truncate(start);
  return true;
}

bool RequestBodyParser::Impl::read_prompt(BodyReader& r, const RequestBodyOptions& options, ParsedBody& out) {
  const bool raw = r.api() == BodyApi::completions || r.api() == BodyApi::embeddings;
  if (!raw) {
    const auto read = [&r] {
      switch (r.api()) {
        case BodyApi::responses: return ingest::read_responses(r);
        case BodyApi::messages: return ingest::read_messages(r);
        case BodyApi::gemini: return ingest::read_gemini(r);
        case BodyApi::converse: return ingest::read_converse(r);
        default: return ingest::read_chat(r);
      }
    };
    if (!read()) return false;
    out.prompt_bytes = canonical.size();
    return add_text_prompt(options, 0, true);
  }
  ingest::Prompts prompts;
  if (!ingest::read_prompts(r, r.api() == BodyApi::completions ? Slot::prompt : Slot::input, ids, prompts))
    return false;
  out.kind = r.api() == BodyApi::embeddings ? PromptKind::embedding
             : prompts.ids                  ? PromptKind::tokens
                                            : PromptKind::text;
  out.prompt_count = prompts.count;
  if (prompts.ids) {
    out.ids_from_body = true;
    out.prompt_bytes = ids.all().size() * sizeof(std::uint32_t);
    return true;
  }
  const auto add = [&](NodeIndex text, bool first) {
    const std::size_t start = canonical.size();
    if (!r.write_head()) return false;  // extra_key: every prompt begins with it
    canonical.text(text);
    out.prompt_bytes += canonical.size() - start;
    return add_text_prompt(options, start, first);
  };
  if (prompts.single != kNoNode) return add(prompts.single, true);
  const NodeIndex first = ingest::JsonTape::first(prompts.list);
  for (NodeIndex text = first; text != tape.end(prompts.list); text = tape.after(text)) {
    if (!add(text, text == first)) return false;
  }
  return true;
}

void RequestBodyParser::Impl::hash(BodyReader& r, const RequestBodyOptions& options, ParsedBody& out) {
  const bool have_ids = out.ids_from_body || options.tokenizer.encode != nullptr;
  HashSpace space{.hash_seed = options.hash_seed, .adapter = out.adapter, .text = !have_ids};
  space.cache_salt = out.cache_salt;  // separates in the engines too, whatever the policy
  space.isolation_key = isolation_key(options.isolation, options.tenant);
  if (have_ids) {
    out.token_ids = ids.first_prompt();
    out.all_token_ids = ids.all();
    out.prompt_ends = ids.ends();
    out.input_tokens = static_cast<std::int64_t>(ids.all().size());
    out.token_blocks = true;
    blocks.resize(std::max(blocks.size(), out.token_ids.size() / options.block_size));
    std::uint64_t seed = block_seed(space);
    // Ids have no head to carry SGLang's extra_key, so it goes where the salt goes, under a kind of its own.
    if (const NodeIndex key = r.member(Slot::extra_key); key != kNoNode && !is_blank_key(r, key)) {
      const std::size_t start = canonical.size();
      canonical.json(key);
      const std::string_view text = canonical.stream().substr(start);
      seed += XXH3_64bits_withSeed(text.data(), text.size(), kExtraKeySeed);
    }
    out.blocks = {blocks.data(), hash_token_blocks(out.token_ids, options.block_size, seed, blocks)};
    return;
  }
  const std::string_view text = canonical.stream();
  blocks.resize(std::max(blocks.size(), text.size() / kTextBlockBytes));
  out.blocks = {blocks.data(), hash_text_blocks(text, block_seed(space), blocks)};
}

bool RequestBodyParser::Impl::read(BodyApi api, std::string_view body, const RequestBodyOptions& options,
                                   ParsedBody& out) {
  if (blocks.capacity() * sizeof(BlockHash) > kKeepBodyBytes) std::vector<BlockHash>().swap(blocks);
  ids.reset(kKeepBodyBytes);
  if (!check(api, body, options)) return false;
  // Frames are shorter than the JSON around the same text, so this is hardly ever exceeded.
  canonical.begin(body.size(), options.hash_seed);
  BodyReader reader(api, tape, canonical, error);
  if (!read_hints(reader, options, out) || !read_prompt(reader, options, out)) return false;
  hash(reader, options, out);
  return true;
}

void RequestBodyParser::Impl::forget_text() noexcept {
  canonical.reset(kKeepBodyBytes);
  tape.reset(kKeepBodyBytes);
}

RequestBodyParser::RequestBodyParser() : impl_(std::make_unique<Impl>()) {}
RequestBodyParser::~RequestBodyParser() = default;
RequestBodyParser::RequestBodyParser(RequestBodyParser&&) noexcept = default;
RequestBodyParser& RequestBodyParser::operator=(RequestBodyParser&&) noexcept = default;

Result<ParsedBody> RequestBodyParser::parse(BodyApi api, std::string_view body, const RequestBodyOptions& options) {
  ParsedBody out;
  const bool read = impl_->read(api, body, options, out);
  impl_->forget_text();
  if (!read) return std::move(impl_->error);
  return out;
}

Result<std::string> canonical_prompt(BodyApi api, std::string_view body, const RequestBodyOptions& options) {
  RequestBodyParser::Impl impl;
  ParsedBody out;
  RequestBodyOptions untokenized = options;
  untokenized.tokenizer = {};
  if (!impl.read(api, body, untokenized, out)) return std::move(impl.error);
  if (!out.ids_from_body) return std::string(impl.canonical.stream());
  std::string bytes;
  for (const std::uint32_t id : out.token_ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((id >> shift) & 0xff));
  }
  return bytes;
}

}  // namespace warmroute
