// Clocks, percentiles, live bytes and the output: what rust/src/measure.rs does, in the same way.
// Replaces the global operator new, so it belongs to one source file of a program.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <vector>

namespace {
bool counting = false;
std::atomic<std::int64_t> live{0};
constexpr std::size_t kHeader = 16;  // before each allocation; its size lies at the end of it

void* allocate(std::size_t size, std::size_t align) {
  const std::size_t pad = align > kHeader ? align : kHeader;
  const std::size_t whole = (size + pad + align - 1) / align * align;
  void* base = align > kHeader ? std::aligned_alloc(align, whole) : std::malloc(size + pad);
  if (base == nullptr) std::abort();
  if (counting) live.fetch_add(static_cast<std::int64_t>(size), std::memory_order_relaxed);
  char* p = static_cast<char*>(base) + pad;
  std::memcpy(p - sizeof size, &size, sizeof size);
  return p;
}
void release(void* p, std::size_t align) noexcept {
  if (p == nullptr) return;
  std::size_t size = 0;
  std::memcpy(&size, static_cast<char*>(p) - sizeof size, sizeof size);
  if (counting) live.fetch_sub(static_cast<std::int64_t>(size), std::memory_order_relaxed);
  std::free(static_cast<char*>(p) - (align > kHeader ? align : kHeader));
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t align) { return allocate(size, static_cast<std::size_t>(align)); }
void operator delete(void* p) noexcept { release(p, 1); }
void operator delete(void* p, std::size_t) noexcept { release(p, 1); }
void operator delete(void* p, std::align_val_t align) noexcept { release(p, static_cast<std::size_t>(align)); }
void operator delete(void* p, std::size_t, std::align_val_t align) noexcept {
  release(p, static_cast<std::size_t>(align));
}

namespace {

std::int64_t live_bytes() { return live.load(std::memory_order_relaxed); }

double thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

class Stopwatch {
 public:
  Stopwatch() {
    std::vector<double> idle;
    for (int i = 0; i < 10'000; ++i) {
      const auto begin = Clock::now();
      idle.push_back(since(begin));
    }
    own_ = percentile_of(idle, 0.5);
    samples_.reserve(kSamples);
  }
  template <class Call>
  void once(Call&& call) {
    const auto begin = Clock::now();
    call();
    samples_.push_back(std::max(since(begin) - own_, 0.0));
  }
  /// In groups; those in which another process took the core are measured again, as far as the time allows.
  template <class Call>
  void run(Call&& call) {
    const auto start = Clock::now();
    std::size_t i = 0;
    while (samples_.size() + kGroup <= kSamples && since(start) < kLongestNs) {
      const std::size_t kept = samples_.size();
      const long preempted = preemptions();
      for (std::size_t k = 0; k < kGroup; ++k, ++i) once([&] { call(i); });
      if (preemptions() != preempted && kept >= kGroup) samples_.resize(kept);
    }
  }
  /// units: nanoseconds.
  double percentile(double p) { return percentile_of(samples_, p); }
  /// Calls `count` times between two readings of the clock. returns: the median of 200 such means; for calls near the clock's step.
  template <class Call>
  static double mean(std::size_t count, Call&& call) {
    std::vector<double> means;
    for (int round = 0; round < 200; ++round) {
      const auto begin = Clock::now();
      for (std::size_t i = 0; i < count; ++i) call(i);
      means.push_back(since(begin) / static_cast<double>(count));
    }
    return percentile_of(means, 0.5);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kSamples = 200'000;
  static constexpr std::size_t kGroup = 64;
  static constexpr double kLongestNs = 300e6;
  static long preemptions() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
  }
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  static double percentile_of(std::vector<double>& v, double p) {
    if (v.empty()) return 0;
    const auto at = v.begin() + static_cast<std::ptrdiff_t>(p * static_cast<double>(v.size() - 1));
    std::nth_element(v.begin(), at, v.end());
    return *at;
  }
  double own_ = 0;
  std::vector<double> samples_;
};

template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

const char* contender = "warmroute";

void value(const char* workload, const std::string& args, const char* metric, double v, const char* unit) {
  std::printf(
      "{\"contender\":\"%s\",\"workload\":\"%s\",\"args\":\"%s\",\"metric\":\"%s\",\"value\":%.4f,\"unit\":\"%s\"}\n",
      contender, workload, args.c_str(), metric, v, unit);
}
void percentiles(const char* workload, const std::string& args, Stopwatch& watch) {
  value(workload, args, "p50", watch.percentile(0.5), "ns");
  value(workload, args, "p99", watch.percentile(0.99), "ns");
}
void digest(const char* workload, const std::string& args, std::uint64_t d) {
  value(workload, args, "digest", static_cast<double>(d >> 16), "");
}
[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "peers_ours: %s\n", why.c_str());
  std::exit(2);
}
std::string operator""_s(const char* s, std::size_t n) { return {s, n}; }
std::string str(std::size_t v) { return std::to_string(v); }

}  // namespace
