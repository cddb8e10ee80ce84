/// What rates were learned, out and in again: the bodies of RateLearner's, ReplicaPace's and RouterCore's calls for it.
/// A learner that begins with a copy goes on as the one that was copied: equal samples give equal rates (a test says so).
/// Locks: `control_`, then a learner's or pace's own flag, which is held for the length of one sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "warmroute/route/detail/router_core.hpp"
#include "warmroute/route/learned.hpp"

namespace warmroute::detail {

/// Waits for the flag: for the control side.
class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) noexcept : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {}
  }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;
  ~SpinLock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& flag_;
};

// The order of LearnedKind::sums. `Visit` is called once for each number.
template <class Parts, class Matrix, class Rest, class Visit>
void each_sum(Parts& factors, Parts& right, Matrix& matrix, const Rest& rest, Visit&& visit) {
  for (auto& f : factors) visit(f);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = i; j < matrix.size(); ++j) visit(matrix[i][j]);
  }
  for (auto& r : right) visit(r);
  for (auto* r : rest) visit(*r);
}

inline LearnedKind RateLearner::copy() const noexcept {
  LearnedKind out;
  const SpinLock lock(busy_);
  out.declared = declared();
  out.samples = samples();
  out.trusted = trusted();
  std::size_t at = 0;
  const std::array rest{&whole_square_, &whole_right_,    deviation_.data(), deviation_.data() + 1,
                        seen_.data(),   seen_.data() + 1, &common_};
  each_sum(factors_, right_, matrix_, rest, [&](const std::int64_t& sum) { out.sums[at++] = sum; });
  return out;
}

// Shares are 64 times 1/4096 at most, a sample takes 17/16 of 2^16 at most, and sums stay below 2^10 of them: see `add`.
inline bool RateLearner::possible(const LearnedKind& k) noexcept {
  constexpr std::int64_t kMostSum = std::int64_t{1} << 44;
  std::size_t at = 0;
  bool good = k.samples > 0 && k.samples < std::int64_t{1} << 50;
  for (; at < kParts; ++at) good = good && k.sums[at] >= kFactor / kFurthest && k.sums[at] <= kFactor * kFurthest;
  for (; at < LearnedKind::kSums - 5; ++at) good = good && k.sums[at] >= -kMostSum && k.sums[at] <= kMostSum;
  for (; at < LearnedKind::kSums - 3; ++at) good = good && k.sums[at] >= kNarrowest && k.sums[at] <= kWidest;
  for (; at < LearnedKind::kSums - 1; ++at) good = good && k.sums[at] >= 0 && k.sums[at] <= k.samples;
  return good && k.sums[at] >= -16 * kWidest && k.sums[at] <= 16 * kWidest;
}

inline bool RateLearner::begin_with(const LearnedKind& learned) noexcept {
  const SpinLock lock(busy_);
  if (samples() != 0 || learned.declared != declared() || !possible(learned)) return false;
  std::size_t at = 0;
  const std::array rest{&whole_square_, &whole_right_,    deviation_.data(), deviation_.data() + 1,
                        seen_.data(),   seen_.data() + 1, &common_};
  each_sum(factors_, right_, matrix_, rest, [&](std::int64_t& sum) { sum = learned.sums[at++]; });
  for (std::size_t i = 0; i < kParts; ++i) {
    for (std::size_t j = 0; j < i; ++j) matrix_[i][j] = matrix_[j][i];
  }
  samples_.store(learned.samples, std::memory_order_relaxed);
  trusted_.store(learned.trusted, std::memory_order_relaxed);
  publish();
  return true;
}

inline std::int64_t ReplicaPace::slowness(ReplicaId replica) const noexcept {
  const SpinLock lock(busy_);
  return replica == replica_ ? slowness_ : 0;
}

inline bool ReplicaPace::begin_with(ReplicaId replica, std::int64_t slowness, LoadBook& book) noexcept {
  const SpinLock lock(busy_);
  if (replica == replica_) return false;
  begin_call(replica, book);
  slowness_ = std::clamp(slowness, kOne * kFine / 4, kOne * kFine * 4);
  publish(book);
  return true;
}

inline Result<LearnedPool> RouterCore::learned(std::string_view name) const {
  const std::lock_guard lock(control_);
  const auto pool = std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p->name == name; });
  if (pool == pools_.end()) return Error{Code::not_found, "no replica was ever in that pool", kNoOffset};
  LearnedPool out;
  for (const auto& learner : (*pool)->learners) {
    if (learner->samples() > 0) out.kinds.push_back(learner->copy());
  }
  for (const ReplicaRow& row : topology_.latest().rows) {
    if (row.spec.pool != name) continue;
    const std::int64_t slowness = (*pool)->paces[row.id.slot].slowness(row.id);
    if (slowness > 0) out.replicas.push_back({row.spec.name, row.spec.dp_rank, slowness});
  }
  return out;
}

inline Result<RestoredLearned> RouterCore::restore_learned(std::string_view name, const LearnedPool& from) {
  const bool possible = std::all_of(from.kinds.begin(), from.kinds.end(), RateLearner::possible) &&
                        std::all_of(from.replicas.begin(), from.replicas.end(), [](const LearnedSlowness& r) {
                          return r.slowness > 0 && r.slowness <= std::int64_t{1} << 30;
                        });
  if (!possible) return Error{Code::invalid_argument, "these rates were not learned by a router", kNoOffset};
  const std::lock_guard lock(control_);
  const auto pool = std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p->name == name; });
  if (pool == pools_.end()) return Error{Code::not_found, "no replica was ever in that pool", kNoOffset};
  RestoredLearned out;
  for (const LearnedKind& kind : from.kinds) {
    for (const auto& learner : (*pool)->learners) out.kinds += learner->begin_with(kind) ? 1u : 0u;
  }
  for (const LearnedSlowness& replica : from.replicas) {
    for (const ReplicaRow& row : topology_.latest().rows) {
      if (row.spec.pool != name || row.spec.name != replica.name || row.spec.dp_rank != replica.dp_rank) continue;
      LoadBook& book = table_.book(row.id.slot);
      out.replicas += (*pool)->paces[row.id.slot].begin_with(row.id, replica.slowness, book) ? 1u : 0u;
      note_apart(**pool, book);
    }
  }
  return out;
}

}  // namespace warmroute::detail
