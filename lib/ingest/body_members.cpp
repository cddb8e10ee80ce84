// Which top-level members each API has. What is not listed for an API is checked as JSON but not read.
#include "ingest/body_reader.hpp"
#include "ingest/json_text.hpp"

namespace warmroute::ingest {
namespace {

constexpr std::uint8_t bit(BodyApi api) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(api)); }
constexpr std::uint8_t kChat = bit(BodyApi::chat);
constexpr std::uint8_t kCompletions = bit(BodyApi::completions);
constexpr std::uint8_t kResponses = bit(BodyApi::responses);
constexpr std::uint8_t kEmbeddings = bit(BodyApi::embeddings);
constexpr std::uint8_t kMessages = bit(BodyApi::messages);
constexpr std::uint8_t kGemini = bit(BodyApi::gemini);
constexpr std::uint8_t kConverse = bit(BodyApi::converse);
constexpr std::uint8_t kOpenAi = kChat | kCompletions | kResponses | kEmbeddings;
constexpr std::uint8_t kAll = kOpenAi | kMessages;
constexpr std::uint8_t kRendered = kChat | kResponses | kMessages;

struct Member {
  std::string_view name;
  std::uint8_t apis;
};
// In the order of Slot.
constexpr std::array<Member, 35> kMembers{{
    {"model", kAll},
    {"stream", kAll},
    {"stream_options", kAll},
    {"session_id", kAll},
    {"session_params", kAll},
    {"prompt_cache_key", kAll},
    {"user", kOpenAi},
    {"safety_identifier", kOpenAi},
    {"cache_salt", kAll},
    {"lora_path", kAll},
    {"extra_key", kAll},
    {"messages", kChat | kMessages | kConverse},
    {"tools", kRendered | kGemini},
    {"functions", kChat},
    {"max_tokens", kChat | kCompletions | kMessages},
    {"max_completion_tokens", kChat},
    {"chat_template", kRendered},
    {"chat_template_kwargs", kRendered},
    {"documents", kRendered},
    {"prompt", kCompletions | kResponses},
    {"input", kEmbeddings | kResponses},
    {"instructions", kResponses},
    {"conversation", kResponses},
    {"previous_response_id", kResponses},
    {"max_output_tokens", kResponses},
    {"system", kMessages | kConverse},
    {"metadata", kMessages},
    {"contents", kGemini},
    {"systemInstruction", kGemini},
    {"system_instruction", kGemini},
    {"cachedContent", kGemini},
    {"generationConfig", kGemini},
    {"generation_config", kGemini},
    {"toolConfig", kConverse},
    {"inferenceConfig", kConverse},
}};
static_assert(kMembers.size() == static_cast<std::size_t>(Slot::inference_config) + 1);
static_assert(kMembers.size() <= JsonTape::kMaxSlots);

}  // namespace

std::string_view slot_name(Slot slot) noexcept { return kMembers[static_cast<std::size_t>(slot)].name; }

int find_slot(const void* context, std::string_view raw_key, bool escaped) {
  const std::uint8_t api = bit(*static_cast<const BodyApi*>(context));
  for (std::size_t i = 0; i < kMembers.size(); ++i) {
    if ((kMembers[i].apis & api) == 0) continue;
    if (escaped ? decodes_to(raw_key, kMembers[i].name) : raw_key == kMembers[i].name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace warmroute::ingest
