// Engines' events from the wire to the index. One iteration is one payload; items are blocks. Args: blocks per payload, form (0: one array
// event, as vLLM up to 0.23; 1: one map event, as today; 2: a map event for each block). Blocks of 16 tokens from a vocabulary of 128 k.
#include <benchmark/benchmark.h>

#include <array>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv_payloads.hpp"
#include "prefix_workloads.hpp"
#include "warmroute/ingest/kv_events.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute {
namespace {

using bench::kBlockTokens, bench::payload_of, bench::put_be, bench::put_list, bench::put_number, bench::put_text;

// So many that branch predictors do not know them by heart; a few megabytes, since frames come from a socket's buffer that is warm.
std::vector<std::string> payloads(std::size_t blocks, std::int64_t form) {
  std::vector<std::string> out;
  for (std::uint64_t p = 0; p < 16'384 / blocks; ++p) out.push_back(payload_of(p, blocks, form));
  return out;
}

void report(benchmark::State& state, const std::vector<std::string>& all, std::size_t blocks) {
  std::size_t bytes = 0;
  for (const std::string& p : all) bytes += p.size();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(blocks));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes / all.size()));
  state.SetLabel("items are blocks");
}

void decode(benchmark::State& state, bool hash) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  const auto all = payloads(blocks, state.range(1));
  KvEventDecoder decoder;
  KvEventOptions options;
  options.hash = hash;
  std::size_t i = 0;
  for (auto _ : state) {
    const auto batch = decoder.decode(all[i++ % all.size()], options);
    if (!batch.ok() || batch->events.empty()) state.SkipWithError("not decoded");
    benchmark::DoNotOptimize(batch->events.data());
  }
  report(state, all, blocks);
}

void DecodeOnly(benchmark::State& state) { decode(state, false); }
void DecodeAndHash(benchmark::State& state) { decode(state, true); }

// Into an index that holds none of it: all payloads once, then all their blocks are cleared.
void DecodeHashAndStore(benchmark::State& state) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  const auto all = payloads(blocks, state.range(1));
  KvEventDecoder decoder;
  const KvEventOptions options;
  auto index = std::make_unique<PrefixIndex>();
  const ReplicaId replica{0, 1};
  std::size_t i = 0;
  for (auto _ : state) {
    if (i == all.size()) {
      state.PauseTiming();
      i = 0;
      index = std::make_unique<PrefixIndex>();
      state.ResumeTiming();
    }
    const auto batch = decoder.decode(all[i++], options);
    for (const KvEvent& e : batch->events) {
      const StoredBlocks s = e.stored_blocks();
      if (!index->store_event(replica, s.tier, s.parent ? &*s.parent : nullptr, s.ids, s.blocks).ok()) {
        state.SkipWithError("not stored");
      }
    }
  }
  report(state, all, blocks);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"blocks", "form"})->ArgsProduct({{1, 16, 300}, {0, 1}})->Args({16, 2})->Args({300, 2});
}
BENCHMARK(DecodeOnly)->Apply(sizes);
BENCHMARK(DecodeAndHash)->Apply(sizes);
BENCHMARK(DecodeHashAndStore)->Apply(sizes);

// Evictions: removed events of one block each, as vLLM sends them. Args: events per payload.
void DecodeRemovals(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::string payload = "\x93\xcb";
  put_be(payload, std::bit_cast<std::uint64_t>(1.7e9), 8);
  put_list(payload, count);
  for (std::size_t i = 0; i < count; ++i) {
    payload.push_back('\x84');
    put_text(payload, "type");
    put_text(payload, "BlockRemoved");
    put_text(payload, "block_hashes");
    put_list(payload, 1);
    put_number(payload, bench::mix(i));
    put_text(payload, "medium");
    put_text(payload, "GPU");
    put_text(payload, "group_idx");
    payload.push_back('\0');
  }
  payload.push_back('\0');
  KvEventDecoder decoder;
  const KvEventOptions options;
  for (auto _ : state) {
    const auto batch = decoder.decode(payload, options);
    if (!batch.ok() || batch->events.size() != count) state.SkipWithError("not decoded");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DecodeRemovals)->ArgName("events")->Arg(1)->Arg(1'000);

}  // namespace
}  // namespace warmroute
