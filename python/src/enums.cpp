// Every enum of the library as an enum.IntEnum with the same numbers.
#include "common.hpp"

namespace warmroute::python {
namespace {

template <class E>
void bind(py::module_& m, const char* doc) {
  py::native_enum<E> bound(m, EnumNames<E>::kPythonName, "enum.IntEnum", doc);
  for (std::size_t i = 0; i < EnumNames<E>::kNames.size(); ++i) {
    bound.value(std::string(EnumNames<E>::kNames[i]).c_str(), static_cast<E>(i));
  }
  bound.finalize();
}

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
  bind<Algorithm>(m, "How a replica is picked. `cost` is the default; the others are baselines and ways out.");
  bind<BlockKind>(m, "What a block of a prompt is made of.");
  bind<BodyApi>(m, "Which wire format a body is in.");
  bind<CacheKind>(m,
                  "How an engine keeps what it has computed: paged, blocks that requests share (vLLM, SGLang); slots, "
                  "whole sequences (llama.cpp).");
  bind<Health>(m, "up takes requests; draining finishes what it has; down takes nothing. What it holds is kept.");
  bind<Isolation>(m, "Which tenants may share cached blocks.");
  bind<KvNoticeKind>(m, "What happened to a KvSource.");
  bind<KvResync>(m, "Why a KvSource cleared the cache.");
  bind<KvSocket>(m, "Where frames of KV events come from, by ZeroMQ's names.");
  bind<KvSourceState>(m, "waiting: no message yet. live: all that came is applied. replaying: a gap is being filled.");
  bind<LogLevel>(m, "How loud a log line is.");
  bind<Outcome>(m, "How a request ended.");
  bind<PrefixUnit>(m, "What an engine's prefix-cache counters count.");
  bind<PromptKind>(m, "What a body's prompt was given as.");
  bind<Reason>(m, "Why this replica and not the one that holds most of the prompt.");
  bind<RingKey>(m, "What the ring's key is made of.");
  bind<Role>(m, "What a replica computes.");
  bind<Signal>(m, "What an engine reports about itself.");
  bind<SpillOrder>(m, "The order in which a walk leaves the ring's home.");
  bind<StaleSignals>(m, "What an engine signal older than signals_max_age_ns means.");
  bind<Tier>(m, "Where a KV block lies: in a replica's memory, or in a store that all replicas of its pool share.");
  bind<Verdict>(m, "The outcome of a routing call; routed is 0.");
  bind_codes(m);
}

}  // namespace warmroute::python
