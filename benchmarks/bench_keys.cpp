// Keys: checking one of N keys, with the digest and without it (a public id that does not exist), and taking a snapshot.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

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
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 65'536; ++i)
    keys.push_back(std::string("sk-") + prefix + public_id((i * 7'919) % count) + "-" + kSecret);
  KeyGrant grant;
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(set.check(keys[i++ & 65'535], {seconds(2), wall_seconds(1)}, grant));
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

void snapshot(benchmark::State& state) {
  const std::vector<KeyRecord> all = records(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    KeySet set;
    benchmark::DoNotOptimize(set.replace(1, all, seconds(1)));
  }
}
BENCHMARK(snapshot)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void revoke(benchmark::State& state) {
  KeySet set;
  if (!set.replace(1, records(static_cast<std::size_t>(state.range(0))), seconds(1))) return state.SkipWithError("set");
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(set.revoke(public_id(i++), 1));
}
BENCHMARK(revoke)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);

}  // namespace
