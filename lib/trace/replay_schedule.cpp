// When a trace's requests are sent, and what the best cache could do for them.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {
namespace {

// A trace of 10^7 prompts of 10^6 tokens is 10^21 ps of work: more than 64 bits hold.
__extension__ typedef unsigned __int128 Wide;

}  // namespace

void spread_arrivals(std::vector<TraceRecord>& records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const TraceRecord& a, const TraceRecord& b) { return a.arrival_us < b.arrival_us; });
  std::int64_t gap = 0;
  for (std::size_t begin = 0, end = 0; begin < records.size(); begin = end) {
    const std::int64_t t = records[begin].arrival_us;
    while (end < records.size() && records[end].arrival_us == t) ++end;
    if (end < records.size()) gap = records[end].arrival_us - t;
    const auto n = static_cast<std::int64_t>(end - begin);
    for (std::size_t i = begin; i < end; ++i)
      records[i].arrival_us = t + gap * static_cast<std::int64_t>(i - begin) / n;
  }
}

std::int64_t speed_permille_for_load(std::span<const TraceRecord> records, const HardwareProfile& hardware,
                                     std::int64_t replicas, std::int64_t load_permille) {
  if (records.empty()) return 1000;
  Wide work_ps = 0;
  std::int64_t first = records.front().arrival_us, last = first;
  for (const TraceRecord& record : records) {
    work_ps += static_cast<Wide>(hardware.prefill_ps(record.input_tokens, 0));
    first = std::min(first, record.arrival_us);
    last = std::max(last, record.arrival_us);
  }
  if (work_ps == 0 || last == first) return 1000;
  const Wide span_ps = static_cast<Wide>(last - first) * 1'000'000;
  const Wide wanted = span_ps * static_cast<Wide>(replicas) * static_cast<Wide>(load_permille);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>((wanted + work_ps / 2) / work_ps));
}

void scale_arrivals(std::vector<TraceRecord>& records, std::int64_t speed_permille) {
  for (TraceRecord& record : records) record.arrival_us = record.arrival_us * 1000 / speed_permille;
}

PrefixBound prefix_bound(std::span<const TraceRecord> records, std::int64_t block_tokens) {
  absl::flat_hash_set<std::uint64_t> seen;
  PrefixBound bound;
  for (const TraceRecord& record : records) {
    bound.input_tokens += record.input_tokens;
    const std::int64_t size = block_tokens > 0 ? block_tokens : record.block_tokens;
    const auto whole = std::min(static_cast<std::int64_t>(record.blocks.size()), record.input_tokens / size);
    const auto matchable = std::min(whole, (record.input_tokens - 1) / size);
    bool leading = true;
    for (std::int64_t i = 0; i < whole; ++i) {
      leading = !seen.insert(record.blocks[static_cast<std::size_t>(i)]).second && leading;
      if (leading && i < matchable) bound.hit_tokens += size;
    }
  }
  bound.distinct_blocks = static_cast<std::int64_t>(seen.size());
  return bound;
}

}  // namespace warmroute::trace
