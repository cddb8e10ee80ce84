// What call_cost.py's Python calls do, in C++: the same fleet, the same prompts, nanoseconds of this thread's CPU per call.
#include <pybind11/pybind11.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "warmroute/ingest/request_body.hpp"
#include "warmroute/route/router.hpp"

namespace {
using namespace warmroute;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kPrompts = 64;

std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

/// returns: the least of `repeats` means over `calls` calls.
template <class Call>
double least_ns(std::size_t calls, std::size_t repeats, Call&& call) {
  double least = 1e18;
  for (std::size_t r = 0; r < repeats; ++r) {
    const std::int64_t begin = cpu_ns();
    for (std::size_t i = 0; i < calls; ++i) call(i);
    least = std::min(least, static_cast<double>(cpu_ns() - begin) / static_cast<double>(calls));
  }
  return least;
}

struct Fleet {
  Fleet(std::size_t replicas, std::size_t tokens) {
    for (std::size_t i = 0; i < replicas; ++i) (void)router.add_replica({.name = "replica-" + std::to_string(i)}, now);
    for (std::size_t p = 0; p < kPrompts; ++p) {
      auto& ids = prompts.emplace_back(tokens);
      for (std::size_t i = 0; i < tokens; ++i) ids[i] = static_cast<std::uint32_t>(p * 100'003 + i);
      auto& hashes = blocks.emplace_back(tokens / 16);
      hash_token_blocks(ids, 16, block_seed({}), hashes);
    }
  }
  void serve(const Request& r) {
    const Decision d = router.route(r, now);
    router.finish(d.ticket, {}, now);
  }
  Router router;
  Nanos now{1'000'000'000};
  std::vector<std::vector<std::uint32_t>> prompts;
  std::vector<std::vector<BlockHash>> blocks;
};

double tokens_call(std::size_t replicas, std::size_t tokens, std::size_t calls, std::size_t repeats) {
  Fleet fleet(replicas, tokens);
  return least_ns(calls, repeats, [&](std::size_t i) {
    Request r;
    r.token_ids = fleet.prompts[i % kPrompts];
    fleet.serve(r);
  });
}
double blocks_call(std::size_t replicas, std::size_t tokens, std::size_t calls, std::size_t repeats) {
  Fleet fleet(replicas, tokens);
  return least_ns(calls, repeats, [&](std::size_t i) {
    Request r;
    r.blocks = fleet.blocks[i % kPrompts];
    fleet.serve(r);
  });
}
double body_call(const std::string& body, std::size_t replicas, std::size_t calls, std::size_t repeats) {
  Fleet fleet(replicas, 16);
  RequestBodyParser parser;
  return least_ns(calls, repeats, [&](std::size_t) {
    auto parsed = parser.parse(BodyApi::chat, body, body_options(fleet.router.policy()));
    if (parsed) fleet.serve(parsed->request());
  });
}
double match_call(std::size_t replicas, std::size_t tokens, std::size_t calls, std::size_t repeats) {
  Fleet fleet(replicas, tokens);
  PrefixIndex index;
  for (std::size_t p = 0; p < kPrompts; ++p) {
    for (std::size_t i = 0; i < replicas; ++i) {
      (void)index.store({static_cast<std::uint32_t>(i), 0}, Tier::device, fleet.blocks[p]);
    }
  }
  PrefixMatch match;
  return least_ns(calls, repeats, [&](std::size_t i) { index.match(fleet.blocks[i % kPrompts], match); });
}

}  // namespace

PYBIND11_MODULE(cpp_calls, m) {
  m.def("tokens", &tokens_call);
  m.def("blocks", &blocks_call);
  m.def("body", &body_call);
  m.def("match", &match_call);
}
