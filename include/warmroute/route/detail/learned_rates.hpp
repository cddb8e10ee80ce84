/// What observed times say of a pool's hardware: factors on the declared rates F, a, b and k, one set per kind (equal declared rates).
/// Least squares over relative errors, with forgetting: each sample says how long something took and which part of it each declared rate
/// would explain. What the samples cannot tell apart stays in the declared proportion: the declared rates count by their shape first,
/// their scale goes with the first samples.
/// Invariant: learned rates are positive wherever declared ones are, within 1/64..64 of them, and within what a spec may declare; equal
/// samples in equal order give equal rates on every machine (integers only).
/// Does not: allocate, wait (a sample that finds another one being taken is dropped), know requests (replica_pace.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "warmroute/replica/load.hpp"
#include "warmroute/route/learned.hpp"

namespace warmroute::detail {

/// One observation. `part_ns`: what the declared rates make of it. units: ns.
struct RateSample {
  enum Part : std::uint8_t { floor = 0, token = 1, pair = 2, context = 3 };
  static constexpr std::size_t kParts = 4;
  enum class Kind : std::uint8_t { prefill = 0, decode = 1 };

  Kind kind = Kind::prefill;
  std::int64_t observed_ns = 0;
  std::array<std::int64_t, kParts> part_ns{};
};

/// Held for the length of one update, never waited for.
class TryLock {
 public:
  explicit TryLock(std::atomic_flag& flag) noexcept
      : flag_(flag.test_and_set(std::memory_order_acquire) ? nullptr : &flag) {}
  TryLock(const TryLock&) = delete;
  TryLock& operator=(const TryLock&) = delete;
  ~TryLock() {
    if (flag_ != nullptr) flag_->clear(std::memory_order_release);
  }
  [[nodiscard]] bool held() const noexcept { return flag_ != nullptr; }

 private:
  std::atomic_flag* flag_;
};

/// Rates that one side writes while others read: each number is whole, a set may mix two.
class SharedRates {
 public:
  [[nodiscard]] Rates load() const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    return {floor_.load(relaxed), token_.load(relaxed), pair_.load(relaxed), context_.load(relaxed),
            overhead_.load(relaxed)};
  }
  void store(const Rates& rates) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    floor_.store(rates.floor_ns, relaxed);
    token_.store(rates.token_ps, relaxed);
    pair_.store(rates.pair_ps, relaxed);
    context_.store(rates.context_ps, relaxed);
    overhead_.store(rates.overhead_ns, relaxed);
  }

 private:
  std::atomic<std::int64_t> floor_{0};
  std::atomic<std::int64_t> token_{0};
  std::atomic<std::int64_t> pair_{0};
  std::atomic<std::int64_t> context_{0};
  std::atomic<std::int64_t> overhead_{0};
};

/// threads: any.
class RateLearner {
 public:
  static constexpr std::int64_t kOne = 1'024;     // of residuals and slowness
  static constexpr std::int64_t kFactor = 4'096;  // of factors
  static constexpr std::int64_t kSettled = 64;    // samples before one replica is told from its kind

  /// Starts anew. threads: the control side alone; a sample in progress may still be counted.
  void declare(const Rates& declared) noexcept {
    while (busy_.test_and_set(std::memory_order_acquire)) {}
    declared_.store(declared);
    generation_.fetch_add(1, std::memory_order_relaxed);
    factors_.fill(kFactor);
    matrix_ = {};
    right_ = {};
    whole_square_ = whole_right_ = 0;
    deviation_.fill(kWidest);
    seen_.fill(0);
    common_ = 0;
    samples_.store(0, std::memory_order_relaxed);
    trusted_.store(false, std::memory_order_relaxed);
    publish();
    busy_.clear(std::memory_order_release);
  }
  [[nodiscard]] Rates declared() const noexcept { return declared_.load(); }
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// Whether what was learned explains what is seen, and is used.
  [[nodiscard]] bool trusted() const noexcept { return trusted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t samples() const noexcept { return samples_.load(std::memory_order_relaxed); }
  /// returns: what decisions use: as learned, or as declared while that is not trusted.
  [[nodiscard]] Rates rates() const noexcept { return used_.load(); }
  /// returns: as learned, trusted or not: what the next sample is split by.
  [[nodiscard]] Rates estimate() const noexcept { return estimate_.load(); }

  /// `slowness`: of the replica that was observed, against its kind; kOne = as quick.
  /// returns: by how much it took longer than expected, as a share in 1/kOne, clipped at a half, less what all of the kind are off at
  /// the time (that is learned of the kind); 0 when nothing was learned.
  std::int64_t observe(const RateSample& sample, std::int64_t slowness) noexcept {
    const TryLock lock(busy_);
    if (!lock.held() || sample.observed_ns <= 0 || sample.observed_ns > kLongestNs) return 0;
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < kParts; ++i) {
      if (sample.part_ns[i] < 0 || sample.part_ns[i] > kLongestNs) return 0;
      expected += sample.part_ns[i] * factors_[i] / kFactor;
    }
    expected = expected * slowness / kOne;
    if (expected <= 0) return 0;
    const std::int64_t off = std::min(sample.observed_ns, expected * 16) * kOne / expected - kOne;
    const std::int64_t residual = clip(sample.kind, off);
    // Parts over the expected, in 1/kFactor, with one division: both are cut to 30 bits of the expected.
    const int cut = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(expected))) - 30);
    const std::int64_t inverse = (std::int64_t{1} << 52) / (expected >> cut);
    std::array<std::int64_t, kParts> share{};
    for (std::size_t i = 0; i < kParts; ++i) {
      const std::int64_t part = std::min(sample.part_ns[i] * slowness / kOne, expected * kFurthest) >> cut;
      share[i] = (part * inverse) >> 40;
    }
    ++seen_[static_cast<std::size_t>(sample.kind)];
    add(share, kFactor + residual * (kFactor / kOne));
    const std::int64_t count = samples_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (count < kSettled || count % 4 == 0) {
      for (int sweep = count < kSettled ? 4 : 1; sweep > 0; --sweep) solve();
      trust();
      publish();
    }
    common_ += (residual * kOne - common_) / 32;
    return count < kSettled || !trusted() ? 0 : std::clamp(off, -kOne / 2, kOne / 2) - common_ / kOne;
  }

  /// What was learned, and continues from there in another process (learned_state.hpp). threads: the control side alone.
  [[nodiscard]] LearnedKind copy() const noexcept;
  /// Continues from there, unless it has samples of its own. returns: whether it does.
  bool begin_with(const LearnedKind& learned) noexcept;
  /// returns: whether a learner can be in that state: sums of shares that are within what `add` makes of them.
  [[nodiscard]] static bool possible(const LearnedKind& learned) noexcept;

 private:
  static constexpr std::size_t kParts = RateSample::kParts;
  static constexpr std::int64_t kLongestNs = 1'000'000'000'000;
  static constexpr std::int64_t kFurthest = 64;
  static constexpr std::int64_t kWidest = kOne * kOne;  // at first everything up to four times the expected is believed
  static constexpr std::int64_t kNarrowest = kOne * kOne / 50;
  static constexpr int kWindow = 9;           // 2^9 samples: 1 % of noise left of 30 % in each
  static constexpr std::int64_t kPull = 512;  // 1/128 of a sample's weight, towards the declared proportion

  // Beyond three mean deviations is an outlier: it counts as that far. A real change moves the deviation, too, by an eighth per sample.
  std::int64_t clip(RateSample::Kind kind, std::int64_t off) noexcept {
    std::int64_t& mean = deviation_[static_cast<std::size_t>(kind)];  // in 1/kOne^2: small steps count
    const std::int64_t limit = 3 * mean / kOne;
    const std::int64_t clipped = std::clamp(off, -limit, limit);
    mean = std::clamp(mean + (std::abs(clipped) * kOne - mean) / 16, kNarrowest, kWidest);
    return clipped;
  }
  // Shares in 1/4096, sums in 1/65536. Old samples fade: over the last quarter at first, over kWindow in the end.
  void add(const std::array<std::int64_t, kParts>& share, std::int64_t took) noexcept {
    const bool changed = std::abs(common_) > kOne * kOne / 8;  // all are off to one side: not noise, but other hardware
    const auto count = static_cast<std::uint64_t>(samples());
    const int window = changed ? 5 : std::min(kWindow, static_cast<int>(std::bit_width(count / 2 + 16)) - 1);
    const auto fade = [&](std::int64_t& sum, std::int64_t more) { sum += (more >> 8) - (sum >> window); };
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < kParts; ++i) {
      whole += share[i];
      fade(right_[i], share[i] * took);
      for (std::size_t j = i; j < kParts; ++j) {
        fade(matrix_[i][j], share[i] * share[j]);
        matrix_[j][i] = matrix_[i][j];
      }
    }
    fade(whole_square_, whole * whole);
    fade(whole_right_, whole * took);
  }
  // One sweep of coordinate descent from where the last one ended; what no sample speaks of follows the scale of all.
  void solve() noexcept {
    if (whole_square_ <= 0) return;
    const std::int64_t scale =
        std::clamp(whole_right_ * kFactor / whole_square_, kFactor / kFurthest, kFactor * kFurthest);
    for (std::size_t i = 0; i < kParts; ++i) {
      const std::int64_t pull = std::max<std::int64_t>(1, kPull * kFactor / factors_[i] * kFactor / factors_[i]);
      std::int64_t rest = right_[i] * kFactor + pull * scale;
      for (std::size_t j = 0; j < kParts; ++j) {
        if (j != i) rest -= matrix_[i][j] * factors_[j];
      }
      factors_[i] = std::clamp(rest / (matrix_[i][i] + pull), std::max(scale / 32, kFactor / kFurthest),
                               std::min(scale * 32, kFactor * kFurthest));
    }
  }
  // Where deviations stay large, something else is at work: another router's requests, above all, which take time that no rate of one's own
  // requests explains. Declared rates are better then (8 routers, no signals: TTFT +11 %, with a shape learned from their mixture).
  void trust() noexcept {
    std::int64_t most = samples() < 16 ? kWidest : 0;
    for (std::size_t kind = 0; kind < seen_.size(); ++kind) {  // a caller may tell of first tokens alone
      if (seen_[kind] * 8 >= samples()) most = std::max(most, deviation_[kind]);
    }
    if (most < kOne * kOne / 5) trusted_.store(true, std::memory_order_relaxed);
    if (most > kOne * kOne / 3) trusted_.store(false, std::memory_order_relaxed);
  }
  void publish() noexcept {
    const auto learned = [&](std::int64_t declared, RateSample::Part part, std::int64_t most) {
      const std::int64_t value = declared * factors_[part] / kFactor;
      return declared <= 0 ? 0 : std::clamp<std::int64_t>(value, 1, most);
    };
    const Rates declared = declared_.load();
    const Rates estimate{learned(declared.floor_ns, RateSample::floor, 10'000'000'000),
                         learned(declared.token_ps, RateSample::token, 100'000'000'000),
                         learned(declared.pair_ps, RateSample::pair, 10'000'000),
                         learned(declared.context_ps, RateSample::context, 1'000'000'000),
                         learned(declared.overhead_ns, RateSample::floor, 10'000'000'000)};
    estimate_.store(estimate);
    used_.store(trusted() ? estimate : declared);
  }

  alignas(64) SharedRates used_;  // read by every decision
  // Of the samples, under busy_.
  alignas(64) mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::int64_t> samples_{0};
  std::atomic<bool> trusted_{false};
  SharedRates declared_;
  SharedRates estimate_;
  std::array<std::int64_t, kParts> factors_{};
  std::array<std::array<std::int64_t, kParts>, kParts> matrix_{};
  std::array<std::int64_t, kParts> right_{};
  std::int64_t whole_square_ = 0;
  std::int64_t whole_right_ = 0;
  std::array<std::int64_t, 2> deviation_{};  // by kind of sample
  std::array<std::int64_t, 2> seen_{};
  std::int64_t common_ = 0;  // mean of the last residuals, in 1/kOne^2
};

}  // namespace warmroute::detail
