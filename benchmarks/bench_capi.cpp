// What the C interface adds to a call: the same work through C++ (inlined headers) and through the shared C library, side by side. Small requests, so
// that the difference is not lost in the work; large ones cost the same more, since nothing of a request is copied but its fields.
#include <benchmark/benchmark.h>
#include <warmroute.h>

#include <cstdlib>
#include <vector>

#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace {
using namespace warmroute;

constexpr std::size_t kReplicas = 8;

std::vector<std::uint64_t> path_of(std::size_t blocks) {
  std::vector<std::uint64_t> path(blocks);
  for (std::size_t i = 0; i < blocks; ++i) path[i] = mix(i + 1);
  return path;
}

struct CppFleet {
  explicit CppFleet(std::size_t blocks) : path(path_of(blocks)) {
    for (std::size_t i = 0; i < kReplicas; ++i) {
      if (!router.add_replica({.name = "replica-" + std::to_string(i)}, now)) std::abort();
    }
    request.blocks = {reinterpret_cast<const BlockHash*>(path.data()), path.size()};
    for (int i = 0; i < 100; ++i) router.finish(router.route(request, tick()).ticket, {}, tick());
  }
  Nanos tick() { return now += Nanos{1'000}; }
  std::vector<std::uint64_t> path;
  Router router;
  Request request;
  Nanos now{1'000'000};
};

struct CFleet {
  explicit CFleet(std::size_t blocks) : path(path_of(blocks)) {
    if (wr_router_new(nullptr, &router, nullptr) != WR_STATUS_OK) std::abort();
    for (std::size_t i = 0; i < kReplicas; ++i) {
      const std::string name = "replica-" + std::to_string(i);
      wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
      spec.name = {name.data(), name.size()};
      wr_replica_id id;
      if (wr_router_add_replica(router, &spec, now, &id, nullptr) != WR_STATUS_OK) std::abort();
    }
    request.block_hashes = path.data();
    request.block_count = path.size();
    for (int i = 0; i < 100; ++i) {
      wr_router_route(router, &request, tick(), &decision, nullptr);
      wr_router_finish(router, decision.ticket, nullptr, tick());
    }
  }
  CFleet(const CFleet&) = delete;
  CFleet& operator=(const CFleet&) = delete;
  ~CFleet() { wr_router_free(router); }
  std::int64_t tick() { return now += 1'000; }
  std::vector<std::uint64_t> path;
  wr_router* router = nullptr;
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  std::int64_t now = 1'000'000;
};

void cpp_peek(benchmark::State& state) {
  CppFleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(fleet.router.peek(fleet.request, fleet.now));
}
void c_peek(benchmark::State& state) {
  CFleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    wr_router_peek(fleet.router, &fleet.request, fleet.now, &fleet.decision, nullptr);
    benchmark::DoNotOptimize(fleet.decision);
  }
}
void cpp_route_finish(benchmark::State& state) {
  CppFleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const Decision d = fleet.router.route(fleet.request, fleet.tick());
    benchmark::DoNotOptimize(fleet.router.finish(d.ticket, {}, fleet.tick()));
  }
}
void c_route_finish(benchmark::State& state) {
  CFleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    wr_router_route(fleet.router, &fleet.request, fleet.tick(), &fleet.decision, nullptr);
    benchmark::DoNotOptimize(wr_router_finish(fleet.router, fleet.decision.ticket, nullptr, fleet.tick()));
  }
}
BENCHMARK(cpp_peek)->Arg(4)->Arg(625);
BENCHMARK(c_peek)->Arg(4)->Arg(625);
BENCHMARK(cpp_route_finish)->Arg(4)->Arg(625);
BENCHMARK(c_route_finish)->Arg(4)->Arg(625);

void cpp_ring_home(benchmark::State& state) {
  std::vector<RingMember> members;
  for (std::uint32_t i = 0; i < 64; ++i) members.push_back({"replica-" + std::to_string(i), i, 1.0});
  const HashRing ring = HashRing::build(members).value();
  std::uint64_t key = 1;
  for (auto _ : state) benchmark::DoNotOptimize(ring.home(key += 0x9E3779B97F4A7C15u));
}
void c_ring_home(benchmark::State& state) {
  std::vector<std::string> names;
  std::vector<wr_ring_member> members;
  for (std::uint32_t i = 0; i < 64; ++i) names.push_back("replica-" + std::to_string(i));
  for (std::uint32_t i = 0; i < 64; ++i) {
    wr_ring_member member = WR_RING_MEMBER_INIT;
    member.member = i;
    member.ring_id = {names[i].data(), names[i].size()};
    members.push_back(member);
  }
  wr_ring* ring = nullptr;
  if (wr_ring_new(members.data(), members.size(), sizeof(wr_ring_member), nullptr, &ring, nullptr) != 0) std::abort();
  std::uint64_t key = 1;
  for (auto _ : state) benchmark::DoNotOptimize(wr_ring_home(ring, key += 0x9E3779B97F4A7C15u));
  wr_ring_free(ring);
}
BENCHMARK(cpp_ring_home);
BENCHMARK(c_ring_home);

}  // namespace
