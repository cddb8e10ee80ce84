/// Workloads that a hand can follow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {

struct Asked {
  std::int64_t arrival_us;
  std::vector<std::uint64_t> blocks;
  std::int64_t input, output;
};

/// Requests that follow nobody, with dense block ids as they are.
inline Workload toy_workload(const std::vector<Asked>& asked) {
  Workload out;
  out.block_tokens = 4;
  for (const Asked& a : asked) {
    WorkloadRequest r;
    r.arrival_us = a.arrival_us;
    r.input_tokens = a.input;
    r.output_tokens = a.output;
    r.first_block = out.blocks.size();
    r.block_count = static_cast<std::uint32_t>(a.blocks.size());
    for (const std::uint64_t id : a.blocks) {
      out.blocks.push_back(id);
      out.distinct_blocks = std::max(out.distinct_blocks, id + 1);
    }
    out.requests.push_back(r);
  }
  return out;
}

}  // namespace warmroute::trace
