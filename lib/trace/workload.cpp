// Workloads that need no file format of their own: a read trace in open loop, and the hot prefix.
#include "warmroute/trace/workload.hpp"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "warmroute/trace/sample.hpp"

namespace warmroute::trace {

bool Workload::closed_loop() const noexcept {
  return std::any_of(requests.begin(), requests.end(), [](const WorkloadRequest& r) { return r.follows; });
}

Workload open_loop(std::vector<TraceRecord> records, std::int64_t block_tokens) {
  spread_arrivals(records);
  if (block_tokens <= 0 && !records.empty()) block_tokens = records.front().block_tokens;
  if (block_tokens <= 0) block_tokens = kMooncakeBlockTokens;
  Workload workload;
  workload.block_tokens = block_tokens;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> dense;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> conversations;
  for (const TraceRecord& record : records) {
    WorkloadRequest request;
    request.arrival_us = record.arrival_us;
    request.input_tokens = std::max<std::int64_t>(1, record.input_tokens);
    request.output_tokens = std::max<std::int64_t>(1, record.output_tokens);
    request.first_block = workload.blocks.size();
    const auto whole = std::min(record.blocks.size(), static_cast<std::size_t>(request.input_tokens / block_tokens));
    for (std::size_t i = 0; i < whole; ++i) {
      workload.blocks.push_back(dense.try_emplace(record.blocks[i], dense.size()).first->second);
    }
    request.block_count = static_cast<std::uint32_t>(whole);
    if (record.session != 0) {
      request.conversation =
          conversations.try_emplace(record.session, static_cast<std::uint32_t>(conversations.size())).first->second;
    }
    workload.requests.push_back(request);
  }
  workload.distinct_blocks = dense.size();
  return workload;
}

std::int64_t speed_permille_for_load(const Workload& workload, const HardwareProfile& hardware, std::int64_t replicas,
                                     std::int64_t load_permille) {
  std::vector<TraceRecord> records(workload.requests.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].arrival_us = workload.requests[i].arrival_us;
    records[i].input_tokens = workload.requests[i].input_tokens;
  }
  return speed_permille_for_load(records, hardware, replicas, load_permille);
}

void scale_arrivals(Workload& workload, std::int64_t speed_permille) {
  for (WorkloadRequest& r : workload.requests) r.arrival_us = r.arrival_us * 1000 / speed_permille;
}

Workload hot_prefix(const HotPrefixOptions& options) {
  Workload workload;
  workload.name = "hot prefix";
  workload.block_tokens = options.block_tokens;
  if (options.block_tokens < 1 || options.system_tokens < 0) return workload;  // which simulate refuses
  SplitMix64 random{options.seed};
  const std::int64_t system_blocks = options.system_tokens / options.block_tokens;
  auto next_id = static_cast<std::uint64_t>(system_blocks);
  double start_us = 0;
  std::vector<std::uint64_t> own;  // the agent's blocks behind the system prompt
  for (std::int64_t agent = 0; agent < options.agents; ++agent) {
    start_us += random.exponential() * 100'000;
    own.clear();
    std::int64_t input = options.system_tokens;
    std::int64_t output = 0;
    for (std::int64_t turn = 0; turn < options.turns; ++turn) {
      input += turn == 0 ? random.between(256, 1'023) : output + random.between(128, 2'047);
      output = random.between(64, 511);
      WorkloadRequest request;
      request.input_tokens = input;
      request.output_tokens = output;
      request.conversation = static_cast<std::uint32_t>(agent);
      request.first_block = workload.blocks.size();
      request.block_count = static_cast<std::uint32_t>(input / options.block_tokens);
      while (static_cast<std::int64_t>(own.size()) + system_blocks < input / options.block_tokens)
        own.push_back(next_id++);
      for (std::int64_t b = 0; b < system_blocks; ++b) workload.blocks.push_back(static_cast<std::uint64_t>(b));
      workload.blocks.insert(workload.blocks.end(), own.begin(), own.end());
      if (turn == 0) {
        request.arrival_us = static_cast<std::int64_t>(start_us);
      } else {
        request.follows = true;
        request.delay_us = random.between(500'000, 4'500'000);
        workload.requests.back().first_follower = static_cast<std::uint32_t>(workload.requests.size());
      }
      workload.requests.push_back(request);
    }
  }
  workload.distinct_blocks = next_id;
  return workload;
}

}  // namespace warmroute::trace
