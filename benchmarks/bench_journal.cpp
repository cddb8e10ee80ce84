// The journal: begin and end of an event, safe against a killed process, and with the disk asked in batches; reading back.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "warmroute/usage/journal.hpp"

namespace {

using namespace warmroute;

struct Directory {
  Directory() : path(std::filesystem::temp_directory_path() / "bench-journal-XXXXXX") {
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

UsageEvent sample() {
  UsageEvent e;
  e.operation_id = "0190f5e6-7c1a-7b3e-9d53-0a1b2c3d4e5f";
  e.key_id = "key-0123456789";
  e.team_id = "team-blue";
  e.provider = "openai";
  e.operation = "chat";
  e.request_model = "llama-3.3-70b";
  e.replica_id = "gpu-17";
  e.usage.input_tokens = 4'711;
  e.usage.cached_input_tokens = 4'096;
  e.usage.output_tokens = 250;
  e.cost_picos = 1'234'567'890;
  return e;
}

void begin_and_end(benchmark::State& state, JournalSync sync) {
  const Directory directory;
  JournalOptions options;
  options.sync = sync;
  auto journal = Journal::open(directory.path, options);
  if (!journal) return state.SkipWithError(journal.error().message.c_str());
  const UsageEvent e = sample();
  for (auto _ : state) {
    const auto number = journal->begin(e);
    if (!number || !journal->end(*number, e)) return state.SkipWithError("append");
  }
  state.SetItemsProcessed(state.iterations() * 2);  // records
  state.counters["bytes_per_record"] =
      static_cast<double>(journal->statistics().bytes) / static_cast<double>(state.iterations()) / 2;
}
BENCHMARK_CAPTURE(begin_and_end, none, JournalSync::none);
BENCHMARK_CAPTURE(begin_and_end, batched, JournalSync::batched);

void read_back(benchmark::State& state) {
  const Directory directory;
  auto journal = Journal::open(directory.path);
  const UsageEvent e = sample();
  for (int i = 0; i < 10'000; ++i) {
    if (!journal->end(*journal->begin(e), e)) return state.SkipWithError("append");
  }
  JournalRecord record;
  for (auto _ : state) {
    auto reader = JournalReader::open(directory.path);
    while (*reader->next(record)) benchmark::DoNotOptimize(record.number);
  }
  state.SetItemsProcessed(state.iterations() * 20'000);
}
BENCHMARK(read_back)->Unit(benchmark::kMillisecond);

}  // namespace
