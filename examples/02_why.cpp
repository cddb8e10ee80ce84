// Why a request leaves the replica that holds its prompt: explain() prints every candidate's terms in milliseconds.
#include <cstdio>
#include <numeric>
#include <vector>

#include <warmroute/warmroute.hpp>

using namespace warmroute;

int main() {
  Router router;
  const ReplicaId busy = *router.add_replica({.name = "busy"}, seconds(1));
  (void)router.add_replica({.name = "idle"}, seconds(1));

  std::vector<std::uint32_t> prompt(4'000);
  std::iota(prompt.begin(), prompt.end(), 0u);
  Request request;
  request.token_ids = prompt;
  request.pinned = busy;  // the prompt gets cached there
  const Decision first = router.route(request, seconds(2));
  router.finish(first.ticket, {.output_tokens = 100}, seconds(3));
  request.pinned = kNoReplica;

  std::printf("nothing else is running:\n%s\n", to_text(router.explain(request, seconds(4))).c_str());
  for (std::uint32_t i = 0; i < 6; ++i) {  // six long prompts are waiting for their first token there
    Request other;
    other.input_tokens = 8'000;
    other.pinned = busy;
    router.route(other, seconds(4));
  }
  std::printf("six cold prompts of 8,000 tokens are queued there:\n%s",
              to_text(router.explain(request, seconds(5))).c_str());
  return 0;
}
