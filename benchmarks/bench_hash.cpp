// Block hashes and chains: ns per block, and per 10,000 tokens.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "warmroute/prefix/block_hash.hpp"

namespace warmroute {
namespace {

std::vector<std::uint32_t> some_tokens(std::size_t count) {
  std::vector<std::uint32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint32_t>(i * 7919 % 151'936);
  return tokens;
}

void per_block(benchmark::State& state, std::size_t blocks) {
  state.counters["ns_per_block"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(blocks) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Args: tokens, block size
void hash_tokens(benchmark::State& state) {
  const auto tokens = some_tokens(static_cast<std::size_t>(state.range(0)));
  std::vector<BlockHash> out(tokens.size());
  std::size_t blocks = 0;
  for (auto _ : state) {
    blocks = hash_token_blocks(tokens, static_cast<std::uint32_t>(state.range(1)), 1337, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  per_block(state, blocks);
}
BENCHMARK(hash_tokens)
    ->ArgNames({"tokens", "block"})
    ->Args({10'000, 16})
    ->Args({1'000, 16})
    ->Args({65'536, 16})
    ->Args({10'000, 32})
    ->Args({10'000, 64})
    ->Args({10'000, 128})
    ->Args({10'000, 512})
    ->Args({10'000, 8});

void hash_tokens_and_chain(benchmark::State& state) {
  const auto tokens = some_tokens(static_cast<std::size_t>(state.range(0)));
  std::vector<BlockHash> out(tokens.size());
  std::vector<SequenceHash> chain(tokens.size());
  std::size_t blocks = 0;
  for (auto _ : state) {
    blocks = hash_token_blocks_chained(tokens, static_cast<std::uint32_t>(state.range(1)), 1337, out, chain);
    benchmark::DoNotOptimize(chain.data());
    benchmark::ClobberMemory();
  }
  per_block(state, blocks);
}
BENCHMARK(hash_tokens_and_chain)->ArgNames({"tokens", "block"})->Args({10'000, 16})->Args({10'000, 64});

// Args: bytes of prompt text
void hash_text(benchmark::State& state) {
  const std::string text(static_cast<std::size_t>(state.range(0)), 'x');
  std::vector<BlockHash> out(text.size() / kTextBlockBytes);
  for (auto _ : state) {
    hash_text_blocks(text, 1337, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  per_block(state, out.size());
}
BENCHMARK(hash_text)->ArgName("bytes")->Arg(10'000)->Arg(40'000);

}  // namespace
}  // namespace warmroute
