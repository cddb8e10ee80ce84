// DECIDE and ROUTE: one decision from token ids, from prepared block hashes, and from an OpenAI chat body, with W replicas,
// a warm index of 10^6 blocks and live load; and route + first_token + finish of the same with books and residency. *_everything: engines report
// their caches and loads, another router tells what it has in flight, requests name sessions, and what was routed lately is foreseen, all the prompt.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "warmroute/ingest/request_body.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace {
using namespace warmroute;

constexpr std::size_t kWarmBlocks = 1'000'000;
constexpr std::size_t kPathBlocks = 625;  // 10,000 tokens
constexpr std::size_t kPrompts = 64;

// The first `common` tokens are those of every prompt.
std::vector<std::uint32_t> prompt_tokens(std::size_t prompt, std::size_t count, std::size_t common) {
  std::vector<std::uint32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::uint32_t>(mix((i < common ? 1'000 : prompt) << 20 | i) % 128'000);
  return ids;
}

// W replicas; 10^6 blocks of other prompts spread over them; the measured prompts held by one replica each, and what they have in common by
// all; requests in flight.
struct Fleet {
  explicit Fleet(std::size_t replicas, std::size_t tokens, std::size_t common = 0) {
    RouterOptions options;
    options.max_replicas = static_cast<std::uint32_t>(replicas);
    router = std::make_unique<Router>(options);
    Policy policy;
    policy.capacity_tokens = 1'000'000'000;
    if (!router->set_policy(policy)) std::abort();
    for (std::size_t i = 0; i < replicas; ++i)
      ids.push_back(*router->add_replica({.name = "replica-" + std::to_string(i)}, now));
    std::vector<BlockHash> path(1'000);
    for (std::size_t chain = 0; chain < kWarmBlocks / path.size(); ++chain) {
      for (std::size_t i = 0; i < path.size(); ++i) path[i] = BlockHash{mix(chain << 32 | i)};
      Request r;
      r.blocks = path;
      r.pinned = ids[chain % replicas];
      serve(r);
    }
    for (std::size_t i = 0; i < kPrompts; ++i) {
      prompts.push_back(prompt_tokens(i, tokens, common));
      blocks.emplace_back(tokens / 16);
      hash_token_blocks(prompts.back(), 16, block_seed({}), blocks.back());
      Request r;
      r.blocks = blocks.back();
      r.pinned = ids[i % replicas];
      serve(r);
    }
    for (std::size_t i = 0; i < (common == 0 ? 0 : replicas); ++i) {
      Request r;
      r.blocks = std::span<const BlockHash>(blocks[0]).first(common / 16);
      r.pinned = ids[i];
      serve(r);
    }
    for (std::size_t i = 0; i < replicas * 4; ++i) {  // live load
      Request r;
      r.input_tokens = static_cast<std::int64_t>(1'000 + mix(i) % 8'000);
      r.pinned = ids[i % replicas];
      const Decision d = router->route(r, tick());
      if (i % 2 == 0) router->first_token(d.ticket, tick());
    }
  }
  void serve(const Request& r) {
    const Decision d = router->route(r, tick());
    router->first_token(d.ticket, tick());
    router->finish(d.ticket, {}, tick());
  }
  // The prompts are foreseen as long as they wait for their first tokens, and in the index by their holders' events.
  void everything() {
    for (const ReplicaId id : ids) {
      if (!router->blocks_stored(id, {}, tick())) std::abort();
    }
    std::vector<EngineHash> names(kPathBlocks);
    for (std::size_t i = 0; i < kPrompts; ++i) {
      for (std::size_t b = 0; b < kPathBlocks; ++b) names[b] = EngineHash{mix(i << 32 | b | 1ULL << 60)};
      StoredBlocks stored;
      stored.ids = names;
      stored.blocks = blocks[i];
      if (!router->blocks_stored(ids[i % ids.size()], stored, tick())) std::abort();
      Request r;
      r.blocks = blocks[i];
      r.pinned = ids[i % ids.size()];
      router->route(r, tick());
    }
    std::vector<PeerLoad> told;
    router->loads(told, tick());
    if (!router->peer_loads(1, told, tick())) std::abort();
    for (const ReplicaId id : ids) {
      const auto report = [&](Signal kind, double value) {
        if (!router->signal(id, kind, value, tick())) std::abort();
      };
      report(Signal::running, 12);
      report(Signal::waiting, 2);
      report(Signal::kv_usage, 0.5);
    }
    for (std::size_t i = 0; i < kPrompts; ++i) sessions.push_back("session-" + std::to_string(i));
  }
  Request request(std::size_t i) const {
    Request r;
    r.blocks = blocks[i % kPrompts];
    if (!sessions.empty()) r.session = sessions[i % kPrompts];
    return r;
  }
  Nanos tick() { return now += Nanos{1'000}; }

  Nanos now{1'000'000};
  std::unique_ptr<Router> router;
  std::vector<ReplicaId> ids;
  std::vector<std::vector<std::uint32_t>> prompts;
  std::vector<std::vector<BlockHash>> blocks;
  std::vector<std::string> sessions;
};

void decide_tokens(benchmark::State& state) {
  Fleet fleet(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  std::size_t i = 0;
  for (auto _ : state) {
    Request r;
    r.token_ids = fleet.prompts[i++ % kPrompts];
    benchmark::DoNotOptimize(fleet.router->peek(r, fleet.now));
  }
}
BENCHMARK(decide_tokens)->ArgNames({"W", "tokens"})->ArgsProduct({{8, 64, 1'024}, {1'000, 10'000, 65'000}});

void decide_blocks(benchmark::State& state, bool everything) {
  Fleet fleet(static_cast<std::size_t>(state.range(0)), kPathBlocks * 16);
  if (everything) fleet.everything();
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(fleet.router->peek(fleet.request(i++), fleet.now));
}
void decide_blocks(benchmark::State& state) { decide_blocks(state, false); }
void decide_everything(benchmark::State& state) { decide_blocks(state, true); }
// All prompts begin with an instruction of 2,048 tokens, which every replica holds.
void decide_shared(benchmark::State& state) {
  Fleet fleet(static_cast<std::size_t>(state.range(0)), kPathBlocks * 16, 2'048);
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(fleet.router->peek(fleet.request(i++), fleet.now));
}
// Every replica may prefill for another: who prefills, who decodes, and whether one does both.
void decide_pairs(benchmark::State& state) {
  Fleet fleet(static_cast<std::size_t>(state.range(0)), kPathBlocks * 16);
  Policy policy = fleet.router->policy();
  policy.disaggregate = Disaggregate::decided;
  policy.unified_pairs = true;
  if (!fleet.router->set_policy(policy)) std::abort();
  fleet.now += seconds(60);  // what they computed to become warm fades: shares of prefill as in traffic
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(fleet.router->peek(fleet.request(i++), fleet.now));
}
BENCHMARK(decide_pairs)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);
BENCHMARK(decide_shared)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);
BENCHMARK(decide_blocks)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);
BENCHMARK(decide_everything)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);

void decide_body(benchmark::State& state) {
  Fleet fleet(64, 1'000);
  std::string body =
      R"({"model":"m","messages":[{"role":"system","content":"You are careful."},{"role":"user","content":")";
  while (body.size() < static_cast<std::size_t>(state.range(0)) - 4)
    body += "every word of this prompt counts, and every one is counted. ";
  body += "\"}],\"stream\":true}";
  RequestBodyParser parser;
  RequestBodyOptions options;
  std::size_t bytes = 0;
  for (auto _ : state) {
    auto parsed = parser.parse(BodyApi::chat, body, options);
    if (!parsed) state.SkipWithError(parsed.error().message.c_str());
    benchmark::DoNotOptimize(fleet.router->peek(parsed->request(), fleet.now));
    bytes += body.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(decide_body)->ArgName("bytes")->Arg(4 << 10)->Arg(32 << 10)->Arg(256 << 10);

void route_warm(benchmark::State& state, bool everything) {
  Fleet fleet(static_cast<std::size_t>(state.range(0)), kPathBlocks * 16);
  if (everything) fleet.everything();
  std::size_t i = 0;
  for (auto _ : state) {
    const Decision d = fleet.router->route(fleet.request(i++), fleet.tick());
    fleet.router->first_token(d.ticket, fleet.tick());
    fleet.router->finish(d.ticket, {10'000, d.total_cached().value, 100}, fleet.tick());
  }
}
void route_warm(benchmark::State& state) { route_warm(state, false); }
void route_everything(benchmark::State& state) { route_warm(state, true); }
BENCHMARK(route_warm)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);
BENCHMARK(route_everything)->ArgName("W")->Arg(8)->Arg(64)->Arg(1'024);

// Two threads that share one router: nothing a reader does may slow another.
void route_threads(benchmark::State& state) {
  static std::unique_ptr<Fleet> fleet;
  if (state.thread_index() == 0) fleet = std::make_unique<Fleet>(64, kPathBlocks * 16);
  std::size_t i = static_cast<std::size_t>(state.thread_index()) * 31;
  for (auto _ : state) {
    Request r;
    r.blocks = fleet->blocks[i++ % kPrompts];
    const Decision d = fleet->router->route(r, fleet->now);
    fleet->router->finish(d.ticket, {}, fleet->now);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(route_threads)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
