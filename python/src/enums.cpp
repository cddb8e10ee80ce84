// Every enum of the library as an enum.IntEnum with the same numbers.
#include "common.hpp"

namespace warmroute::python {
namespace {

// The numbers of the codes have gaps; unknown ones have no name.
void bind_codes(py::module_& m) {
  py::native_enum<Code> bound(m, "Code", "enum.IntEnum",
                              "What went wrong; Error.code_number. Numbers are fixed and only appended.");
  for (std::int32_t number = 0; number < 64; ++number) {
    const auto code = static_cast<Code>(number);
    if (code_name(code) != "unknown") bound.value(std::string(code_name(code)).c_str(), code);
  }
  bound.finalize();
}

}  // namespace

void bind_enums(py::module_& m) {
  bind_enum<Algorithm>(m, "How a replica is picked. `cost` is the default; the others are baselines and ways out.");
  bind_enum<BlockKind>(m, "What a block of a prompt is made of.");
  bind_enum<BodyApi>(m, "Which wire format a body is in.");
  bind_enum<CacheKind>(
      m,
      "How an engine keeps what it has computed: paged, blocks that requests share (vLLM, SGLang); slots, "
      "whole sequences (llama.cpp).");
  bind_enum<Health>(m, "up takes requests; draining finishes what it has; down takes nothing. What it holds is kept.");
  bind_enum<Isolation>(m, "Which tenants may share cached blocks.");
  bind_enum<KvNoticeKind>(m, "What happened to a KvSource.");
  bind_enum<KvResync>(m, "Why a KvSource cleared the cache.");
  bind_enum<KvSocket>(m, "Where frames of KV events come from, by ZeroMQ's names.");
  bind_enum<KvSourceState>(
      m, "waiting: no message yet. live: all that came is applied. replaying: a gap is being filled.");
  bind_enum<LogLevel>(m, "How loud a log line is.");
  bind_enum<Outcome>(m, "How a request ended.");
  bind_enum<PrefixUnit>(m, "What an engine's prefix-cache counters count.");
  bind_enum<PromptKind>(m, "What a body's prompt was given as.");
  bind_enum<Reason>(m, "Why this replica and not the one that holds most of the prompt.");
  bind_enum<RingKey>(m, "What the ring's key is made of.");
  bind_enum<Role>(m, "What a replica computes.");
  bind_enum<Signal>(m, "What an engine reports about itself.");
  bind_enum<SpillOrder>(m, "The order in which a walk leaves the ring's home.");
  bind_enum<Disaggregate>(m, "Whether prefill and decode of one request may run on different replicas.");
  bind_enum<Split>(m, "Whether one replica or two serve a request, and why.");
  bind_enum<StaleSignals>(m, "What an engine signal older than signals_max_age_ns means.");
  bind_enum<Tier>(m,
                  "Where a KV block lies: in a replica's memory, or in a store that all replicas of its pool share.");
  bind_enum<Verdict>(m, "The outcome of a routing call; routed is 0.");
  bind_codes(m);
}

}  // namespace warmroute::python
