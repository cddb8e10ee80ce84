// Two replicas, one conversation: the second turn goes where the first one is cached.
#include <cstdio>
#include <numeric>
#include <vector>

#include <warmroute/warmroute.hpp>

using namespace warmroute;

int main() {
  Router router;
  for (const char* name : {"gpu-0", "gpu-1"}) {
    if (auto added = router.add_replica({.name = name}, seconds(1)); !added) {
      std::fprintf(stderr, "%s\n", added.error().message.c_str());
      return 1;
    }
  }

  std::vector<std::uint32_t> prompt(2'000);  // token ids of the first turn
  std::iota(prompt.begin(), prompt.end(), 0u);
  Nanos now = seconds(2);  // the caller's monotonic clock
  for (int turn = 1; turn <= 3; ++turn) {
    Request request;
    request.token_ids = prompt;
    const Decision decision = router.route(request, now);  // load is booked from here on
    const auto replica = router.replica(decision.replica);
    if (!replica) return 1;
    std::printf("turn %d: %zu tokens -> %s, %lld cached (%s), first token expected in %.1f ms\n", turn, prompt.size(),
                replica->name.c_str(), static_cast<long long>(decision.total_cached().value),
                reason_name(decision.reason).data(), static_cast<double>(decision.expected_ttft().value) / 1e6);

    now += milliseconds(80);                   // ... the caller forwards the request ...
    router.first_token(decision.ticket, now);  // prefill is over
    now += seconds(3);
    router.finish(decision.ticket, {.cached_tokens = decision.total_cached().value, .output_tokens = 200}, now);

    for (std::uint32_t i = 0; i < 500; ++i) prompt.push_back(100'000 + i);  // answer and next question
  }
  return 0;
}
