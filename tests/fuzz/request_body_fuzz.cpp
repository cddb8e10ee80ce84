// Any bytes as a request body: no crash, and what the parser promises holds.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "warmroute/ingest/request_body.hpp"

namespace {

using namespace warmroute;

void require(bool holds) {
  if (!holds) std::abort();
}

std::size_t ids_of_bytes(void*, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  for (std::size_t i = 0; i < prompt.size() && i < capacity; ++i) out[i] = static_cast<unsigned char>(prompt[i]);
  return prompt.size();
}

}  // namespace

// The first byte: which API (low 3 bits), and whether there is a tokenizer (bit 3).
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static RequestBodyParser reused;
  const auto api = static_cast<BodyApi>((data[0] & 7) % 7);
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestBodyOptions options;
  if ((data[0] & 8) != 0) options.tokenizer.encode = ids_of_bytes;

  const auto parsed = reused.parse(api, body, options);
  const auto canonical = canonical_prompt(api, body, options);
  require(parsed.ok() == canonical.ok());
  if (!parsed.ok()) {
    require(parsed.code() == canonical.code() && !parsed.error().message.empty());
    require(parsed.error().offset <= body.size());
    return 0;
  }
  require(parsed->prompt_count >= 1);
  require(parsed->all_token_ids.size() >= parsed->token_ids.size());
  require(!parsed->token_blocks || parsed->prompt_ends.size() == parsed->prompt_count);
  require(parsed->blocks.size() ==
          (parsed->token_blocks ? parsed->token_ids.size() / options.block_size : canonical->size() / kTextBlockBytes));
  require(parsed->prompt_bytes >= canonical->size());
  return 0;
}
