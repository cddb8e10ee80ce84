/// Reads the body of an LLM request into what routing needs: who asks for which model, and the prompt as block hashes.
/// OpenAI chat completions, completions, responses and embeddings, Anthropic messages, Gemini's generateContent and
/// Bedrock's Converse (which name model and stream in their paths). The same prompt has the same blocks whatever API,
/// client or spelling of JSON it came by; different adapters, salts and tenants share none.
/// Strict: every byte is checked, also in members that routing does not read; what no engine understands is refused,
/// with a code, a message that names the member, and a byte offset. Wrong types in unread members are the engine's.
/// Keeps no prompt text: scratch is wiped before parse() returns; the result has hashes, counts, hints and token ids.
/// Does not: tokenize (a callback may), render chat templates, look at HTTP headers, decide what is allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// Which wire format a body is in.
enum class BodyApi : std::uint8_t {
  chat = 0,         ///< POST /v1/chat/completions
  completions = 1,  ///< POST /v1/completions
  responses = 2,    ///< POST /v1/responses
  embeddings = 3,   ///< POST /v1/embeddings
  messages = 4,     ///< POST /v1/messages (Anthropic)
  gemini = 5,       ///< POST .../models/<model>:generateContent, :streamGenerateContent (Gemini, Vertex)
  converse = 6,     ///< POST /model/<model>/converse, /converse-stream (Bedrock)
};

/// returns: the API whose path `path` ends with, e.g. "/v1/chat/completions" or "/team-a/v1/messages?beta=true".
/// errors: not_found
Result<BodyApi> api_for_path(std::string_view path);

/// Turns one canonical prompt (format: see canonical_prompt) into token ids.
/// threads: called inside parse(), on the caller's thread.
struct Tokenizer {
  void* user = nullptr;
  /// returns: how many ids the prompt has. If that exceeds `capacity`, what was written does not matter: it is called
  /// again with room for as many.
  std::size_t (*encode)(void* user, std::string_view canonical_prompt, std::uint32_t* out,
                        std::size_t capacity) = nullptr;
};

struct RequestBodyOptions {
  std::size_t max_bytes = std::size_t{32} << 20;  ///< larger bodies are too_large; never more than 4 GiB - 1
  std::uint32_t max_depth = 1024;                 ///< nested objects and lists; never more than kMaxBodyDepth
  std::uint32_t block_size = 16;                  ///< units: tokens, 1..512
  std::uint64_t hash_seed = kDynamoHashSeed;
  Tokenizer tokenizer{};                  ///< without one, and without ids in the body, blocks are of text
  std::string_view tenant{};              ///< isolation key, from the verified key, never from the body; empty = none
  std::string_view adapter{};             ///< set by the caller (e.g. split off the model's name); beats the body's
  Isolation isolation = Isolation::salt;  ///< `none` leaves tenants out of the hashes; salts always count
};
inline constexpr std::uint32_t kMaxBodyDepth = 4096;

/// returns: the options under which bodies are hashed as this policy's router expects. Blocks of another size or seed never match.
inline RequestBodyOptions body_options(const Policy& policy) {
  RequestBodyOptions options;
  options.block_size = policy.block_size;
  options.hash_seed = policy.hash_seed;
  options.isolation = policy.isolation;
  return options;
}

/// What the prompt was given as.
enum class PromptKind : std::uint8_t { chat = 0, text = 1, tokens = 2, embedding = 3 };

/// One body, read. lifetime: all views until the parser's next call or end.
struct ParsedBody {
  // As the body has them; empty = absent (an empty string in the body is absent too).
  std::string_view model;
  std::string_view adapter;  ///< lora_path, or the caller's
  std::string_view session;  ///< session_id, else session_params.id, else conversation, else prompt_cache_key
  std::string_view user;     ///< user, else safety_identifier; Anthropic: metadata.user_id
  std::string_view cache_salt;
  std::string_view tenant;  ///< the caller's, see RequestBodyOptions. lifetime: the caller's
  bool stream = false;
  bool include_usage = false;                     ///< stream_options.include_usage is true
  std::optional<std::int64_t> max_output_tokens;  ///< absent: no limit named, or -1

  PromptKind kind = PromptKind::chat;
  std::size_t prompt_count = 1;
  std::span<const BlockHash> blocks;             ///< of the first prompt, whole blocks
  bool token_blocks = false;                     ///< blocks are of token ids; else of kTextBlockBytes of canonical text
  std::span<const std::uint32_t> token_ids;      ///< of the first prompt, if known (from the body or the tokenizer)
  std::span<const std::uint32_t> all_token_ids;  ///< of all prompts, one after another
  std::span<const std::size_t> prompt_ends;      ///< shape: prompt i is all_token_ids[prompt_ends[i-1], prompt_ends[i])
  bool ids_from_body = false;
  std::int64_t input_tokens = kUnknown;  ///< sum over all prompts, if ids are known
  std::size_t prompt_bytes = 0;          ///< canonical bytes, sum over all prompts; 4 per id where the body gave ids

  /// What the router takes. lifetime: views into this body's parser.
  [[nodiscard]] Request request() const noexcept {
    Request r;
    r.model = model;
    r.adapter = adapter;
    r.session = session;
    r.tenant = tenant;
    r.cache_salt = cache_salt;
    r.token_ids = token_ids;
    r.blocks = blocks;
    r.block_kind = token_blocks ? BlockKind::tokens : BlockKind::text;
    r.input_tokens = input_tokens;
    // Ids have no text behind them: their four bytes must not teach anyone how many bytes a token has.
    r.prompt_bytes = ids_from_body ? kUnknown : static_cast<std::int64_t>(prompt_bytes);
    r.max_output_tokens = max_output_tokens.value_or(kUnknown);
    r.stream = stream;
    return r;
  }
};

/// Reads bodies, one after another, in scratch memory that it keeps. threads: one parser per thread.
/// alloc: none once it has seen a body of the size (scratch above 16 MiB is given back); errors allocate their message.
/// cost: 12 us for a 32 KiB chat body, blocks included (bench_request_body).
class RequestBodyParser {
 public:
  RequestBodyParser();
  ~RequestBodyParser();
  RequestBodyParser(RequestBodyParser&&) noexcept;
  RequestBodyParser& operator=(RequestBodyParser&&) noexcept;

  /// errors: invalid_json, invalid_utf8, invalid_unicode (an escaped lone surrogate), too_deep, too_large,
  /// not_an_object, missing_field, wrong_type, value_out_of_range, invalid_value, empty_prompt; invalid_argument for
  /// bad options, internal for a tokenizer that never has room enough.
  Result<ParsedBody> parse(BodyApi api, std::string_view body, const RequestBodyOptions& options = {});

 private:
  friend Result<std::string> canonical_prompt(BodyApi, std::string_view, const RequestBodyOptions&);
  friend struct RequestBodyParserPeer;  // of the tests: looks for text left in scratch
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The first prompt's canonical bytes: what blocks are cut from and what a Tokenizer is given. For embedders with their
/// own tokenizer and for tests; routing needs no copy of it.
///   A raw prompt (completions, embeddings) is its text, token ids are little-endian u32, and a chat is its texts
///   between frames of two bytes: 0xFF (which is in no UTF-8, so that text cannot imitate a border) and a letter.
///   prompt:  head? tool* ( message | item )*
///   head:    'h' and 16 bytes, a digest of what changes the rendering from its start: templates, documents, the
///            server's history, SGLang's extra_key (which a raw prompt may begin with, too)
///   tool:    't' name [ 'd' description ] [ 'p' parameters ] [ 's' strict ] [ 'x' others ]; other kinds: 'T' and JSON
///   message: 'm' role [ 'n' name ] [ 'i' tool call id ] [ 'E' if failed ] [ 'r' reasoning ] part* call*
///   part:    'c' text | 'r' reasoning | 'R' its summary | 'e' encrypted reasoning, 16 bytes of digest | 'f' refusal
///            | 'b' image, 16 bytes of digest [ 'q' detail ] [ 'u' uuid ] | 'o' any other part as JSON
///   call:    'k' (or 'K', custom) name [ 'i' id ] [ 'a' arguments ]
///   item:    'I' and JSON: an item of the Responses API that is no message, reasoning or call
///   JSON is compact, keys in the order given, numbers in one spelling; long binary strings in parts are 'b', too.
/// errors: as RequestBodyParser::parse
Result<std::string> canonical_prompt(BodyApi api, std::string_view body, const RequestBodyOptions& options = {});

}  // namespace warmroute
