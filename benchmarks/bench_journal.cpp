// The journal: begin and end of an event, safe against a killed process, and with the disk asked in batches; reading back.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
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

constexpr std::int64_t kRecords = 400'000;  // each in a place of its own, as a journal's

// What the kernel takes for as many bytes in one call, without anything of ours: the least that a record can cost that a killed
// process does not lose. Beside it the same bytes through a mapped file, which is not used: where the disk has no room for a
// page of it any more, the process is killed.
void bare_write(benchmark::State& state) {
  const Directory directory;
  const int fd = open((directory.path + "/bytes").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::array<char, 134> record{};
  off_t at = 0;
  for (auto _ : state) {
    if (pwrite(fd, record.data(), record.size(), at) != static_cast<ssize_t>(record.size())) {
      state.SkipWithError("pwrite");
      break;
    }
    at += static_cast<off_t>(record.size());
  }
  state.SetItemsProcessed(state.iterations());
  close(fd);
}
BENCHMARK(bare_write)->Iterations(kRecords);

void mapped_store(benchmark::State& state) {
  const Directory directory;
  constexpr std::size_t kBytes = kRecords * 134;
  const int fd = open((directory.path + "/bytes").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (posix_fallocate(fd, 0, kBytes) != 0) state.SkipWithError("posix_fallocate");
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return state.SkipWithError("mmap");
  const std::array<char, 134> record{};
  std::size_t at = 0;
  for (auto _ : state) {
    std::memcpy(static_cast<char*>(mapped) + at, record.data(), record.size());
    benchmark::ClobberMemory();
    at += record.size();
  }
  state.SetItemsProcessed(state.iterations());
  munmap(mapped, kBytes);
}
BENCHMARK(mapped_store)->Iterations(kRecords);

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
