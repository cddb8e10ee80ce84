// From the bytes of an OpenAI chat request to a decision. Prompt text is cut into hashed blocks and forgotten.
#include <cstdio>
#include <string>

#include <warmroute/warmroute.hpp>

using namespace warmroute;

int main() {
  Router router;
  for (const char* name : {"gpu-0", "gpu-1", "gpu-2"}) (void)router.add_replica({.name = name}, seconds(1));

  const std::string system(3'000, 'x');  // a long system prompt
  RequestBodyParser parser;              // one per thread, used again
  Nanos now = seconds(2);
  for (const char* question : {"What is a ring?", "And a radix tree?", "broken \\ud800"}) {
    const std::string body = R"({"model":"m","max_tokens":64,"messages":[{"role":"system","content":")" + system +
                             R"("},{"role":"user","content":")" + question + R"("}]})";
    const auto parsed = parser.parse(BodyApi::chat, body, {});
    if (!parsed) {
      std::printf("refused: %s at byte %llu: %s\n", code_name(parsed.code()).data(),
                  static_cast<unsigned long long>(parsed.error().offset), parsed.error().message.c_str());
      continue;
    }
    const Decision decision = router.route(parsed->request(), now);
    std::printf("%zu bytes of prompt, about %lld tokens -> replica %u, %lld cached\n", parsed->prompt_bytes,
                static_cast<long long>(decision.input_tokens.value), decision.replica.slot,
                static_cast<long long>(decision.total_cached().value));
    router.finish(decision.ticket, {.input_tokens = 760, .output_tokens = 20}, now += seconds(1));
  }
  return 0;
}
