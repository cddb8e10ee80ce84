// Keys: checking one of N keys, with the digest and without it (a public id that does not exist), and taking a snapshot: of records, or
// control's whole signed document, the first one and one in which a key in a thousand is another.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "warmroute/control/applier.hpp"
#include "warmroute/usage/keys.hpp"

namespace {

using namespace warmroute;

constexpr std::string_view kPepper = "0123456789abcdef0123456789abcdef";
constexpr const char* kSecret = "0123456789abcdef0123456789abcdef0123456789abcdef";

std::string public_id(std::size_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "%016zx", n * 0x9e37'79b9'7f4a'7c15u);
  return text;
}

std::vector<KeyRecord> records(std::size_t count) {
  const KeyDigest digest = *key_digest(std::string("x-") + kSecret, KeyDigestKind::hmac_sha256, 1, kPepper);
  std::vector<KeyRecord> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].public_id = public_id(i);
    all[i].team_id = "team-" + std::to_string(i % 1'000);
    all[i].version = 1;
    all[i].digests = {digest};
  }
  return all;
}

void check(benchmark::State& state, const char* prefix) {
  const auto count = static_cast<std::size_t>(state.range(0));
  KeySet set;
  if (!set.add_pepper(1, kPepper) || !set.replace(1, records(count), seconds(1))) return state.SkipWithError("set");
  // Side by side, so that the processor has each key at hand when it is asked for, as one that was just received is.
  std::vector<std::array<char, 128>> keys(262'144);
  std::size_t size = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string key = std::string("sk-") + prefix + public_id((i * 7'919) % count) + "-" + kSecret;
    size = key.copy(keys[i].data(), keys[i].size());
  }
  KeyGrant grant;
  std::size_t i = 0;
  for (auto _ : state) {
    const std::string_view key(keys[i++ % keys.size()].data(), size);
    benchmark::DoNotOptimize(set.check(key, {seconds(2), wall_seconds(1)}, grant));
  }
  state.counters["bytes_per_key"] = static_cast<double>(set.heap_bytes()) / static_cast<double>(count);
}
void accepted(benchmark::State& state) { check(state, ""); }
void unknown(benchmark::State& state) { check(state, "z"); }
BENCHMARK(accepted)->Arg(1'000)->Arg(1'000'000);
BENCHMARK(unknown)->Arg(1'000)->Arg(1'000'000);

void digest_alone(benchmark::State& state) {
  const std::string key = std::string("x-") + kSecret;
  for (auto _ : state) benchmark::DoNotOptimize(key_digest(key, KeyDigestKind::hmac_sha256, 1, kPepper));
}
BENCHMARK(digest_alone);

// What no look-up can do without: one line that is in no cache, of as many bytes as a million keys take, in huge pages.
void one_line_of_memory(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{138} << 20;
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(kHuge, kBytes), std::free);
  if (!memory) return state.SkipWithError("memory");
#ifdef MADV_HUGEPAGE
  madvise(memory.get(), kBytes, MADV_HUGEPAGE);
#endif
  constexpr std::size_t kLines = kBytes / 64;
  auto* const lines = static_cast<std::uint64_t*>(memory.get());
  for (std::size_t i = 0; i < kLines; ++i) lines[i * 8] = i * 0x9e37'79b9'7f4a'7c15u;
  std::uint64_t x = 1;
  for (auto _ : state) x = lines[(x >> 20) % kLines * 8] + x * 0x9e37'79b9'7f4a'7c15u + 1;  // each waits for the last
  benchmark::DoNotOptimize(x);
}
BENCHMARK(one_line_of_memory);

void snapshot(benchmark::State& state) {
  const std::vector<KeyRecord> all = records(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    KeySet set;
    benchmark::DoNotOptimize(set.replace(1, all, seconds(1)));
  }
}
BENCHMARK(snapshot)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

std::string document(std::uint64_t generation, std::vector<KeyRecord> keys, const SigningKey& signer) {
  Snapshot snapshot;
  snapshot.generation = generation;
  snapshot.issued_at = wall_seconds(1'800'000'000);
  snapshot.keys = std::move(keys);
  return *sign_snapshot(write_snapshot(snapshot), signer);
}
// `next`: measured is what comes after the first one: a key in a thousand is revoked, one is issued anew.
void apply(benchmark::State& state, bool next) {
  const auto signer = generate_signing_key();
  std::vector<KeyRecord> all = records(static_cast<std::size_t>(state.range(0)));
  const std::string first = document(1, all, *signer);
  for (std::size_t i = 0; i < all.size(); i += 500) {
    all[i].version = 2;
    all[i].revoked = i % 1'000 == 0;
    if (all[i].revoked) all[i].digests.clear();
  }
  const std::string second = document(2, std::move(all), *signer);
  ControlOptions options;
  options.trust.keys = {signer->public_key()};
  options.snapshot.max_bytes = std::size_t{512} << 20;
  for (auto _ : state) {
    state.PauseTiming();
    KeySet set;
    SnapshotApplier applier(options, {&set});
    if (next && !applier.apply(first, {seconds(1), wall_seconds(1)})) return state.SkipWithError("first");
    state.ResumeTiming();
    if (!applier.apply(next ? second : first, {seconds(2), wall_seconds(2)})) return state.SkipWithError("apply");
    state.PauseTiming();
    if (set.size() + set.revoked() != static_cast<std::size_t>(state.range(0))) return state.SkipWithError("keys");
    state.ResumeTiming();
  }
  state.counters["bytes"] = static_cast<double>(first.size());
}
void apply_first(benchmark::State& state) { apply(state, false); }
void apply_next(benchmark::State& state) { apply(state, true); }
BENCHMARK(apply_first)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(apply_next)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void revoke(benchmark::State& state) {
  KeySet set;
  if (!set.replace(1, records(static_cast<std::size_t>(state.range(0))), seconds(1))) return state.SkipWithError("set");
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(set.revoke(public_id(i++), 1));
}
BENCHMARK(revoke)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);

}  // namespace
