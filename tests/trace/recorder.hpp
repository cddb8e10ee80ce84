/// A sink that keeps what happened, for comparison.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warmroute/trace/replica_model.hpp"

namespace warmroute::trace {

inline constexpr std::int64_t kMs = 1000;

struct Recorder : ReplicaSink {
  void admitted(std::uint64_t id, std::int64_t at, std::int64_t cached, std::int64_t attempt) override {
    if (attempt == 0) cached_tokens[id] = cached;
    admissions[id].push_back(at);
    note("admitted", id, at, cached);
  }
  void token(std::uint64_t id, std::int64_t at, std::int64_t index) override {
    tokens[id].push_back(at);
    note("token", id, at, index);
  }
  void finished(std::uint64_t id, std::int64_t at) override {
    finish[id] = at;
    note("finished", id, at, 0);
  }
  void preempted(std::uint64_t id, std::int64_t at) override {
    preemptions[id].push_back(at);
    note("preempted", id, at, 0);
  }
  void committed(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at) override {
    commits.push_back(block);
    note("committed", block, at, static_cast<std::int64_t>(parent) * 1000 + depth);
  }
  void evicted(std::uint64_t block, std::int64_t at) override {
    evictions.push_back(block);
    note("evicted", block, at, 0);
  }

  void note(const char* what, std::uint64_t id, std::int64_t at, std::int64_t detail) {
    log +=
        std::string(what) + " " + std::to_string(id) + " @" + std::to_string(at) + " " + std::to_string(detail) + "\n";
  }

  std::map<std::uint64_t, std::vector<std::int64_t>> tokens, admissions, preemptions;
  std::map<std::uint64_t, std::int64_t> cached_tokens, finish;
  std::vector<std::uint64_t> commits, evictions;
  std::string log;
};

/// Runs until nothing is left. returns: the time of the last event.
inline std::int64_t drain(ReplicaModel& model, ReplicaSink& sink, std::int64_t now_us) {
  model.start(now_us, sink);
  while (const auto next = model.next_event_us()) {
    now_us = *next;
    model.advance(now_us, sink);
    model.start(now_us, sink);
  }
  return now_us;
}

/// The toy machine of the hand-computed cases: a step takes max(1 ms, 1 ms per token), blocks are 4 tokens.
inline ReplicaModelConfig toy(std::int64_t capacity_blocks = 1'000) {
  ReplicaModelConfig config;
  config.hardware = {"toy", 1'000'000'000, 1'000'000'000, 0, 0, 0, capacity_blocks * 4};
  config.block_tokens = 4;
  return config;
}

}  // namespace warmroute::trace
