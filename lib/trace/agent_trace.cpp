// Conversations of coding agents as closed loops, of any trace whose records say whom they wait for.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {
namespace {

/// Appends conversation after conversation; ids become dense in the order in which they are met.
class Builder {
 public:
  Builder(Workload& workload, const AgentTraceOptions& options) : workload_(workload), options_(options) {}

  /// errors: value_out_of_range.
  Status add(const TraceRecord& record, std::int64_t start_us, std::uint32_t conversation) {
    if (workload_.requests.empty()) workload_.block_tokens = record.block_tokens;
    if (record.block_tokens != workload_.block_tokens)
      return Error{Code::value_out_of_range, "block_size differs between lines", kNoOffset};
    if (conversation != conversation_) known_.clear();
    conversation_ = conversation;
    WorkloadRequest request;
    request.input_tokens = std::max<std::int64_t>(1, record.input_tokens);
    request.output_tokens = std::max<std::int64_t>(1, record.output_tokens);
    request.conversation = conversation;
    request.first_block = workload_.blocks.size();
    const auto whole =
        std::min(record.blocks.size(), static_cast<std::size_t>(request.input_tokens / workload_.block_tokens));
    add_blocks(record.blocks, whole);
    request.block_count = static_cast<std::uint32_t>(whole);
    const auto index = static_cast<std::uint32_t>(workload_.requests.size());
    if (record.follows == 0 || record.follows > index) {
      request.arrival_us = start_us;
    } else {
      request.follows = true;
      request.delay_us = std::min(options_.think_cap_us, record.think_us);
      WorkloadRequest& before = workload_.requests[index - record.follows];
      request.next_sibling = std::exchange(before.first_follower, index);
    }
    workload_.requests.push_back(request);
    return {};
  }
  void finish() { workload_.distinct_blocks = all_.size(); }

 private:
  // Most of a prompt is the one before it once more, so that few ids need a look into a table.
  void add_blocks(const std::vector<std::uint64_t>& ids, std::size_t whole) {
    std::size_t same = 0;
    while (same < whole && same < last_ids_.size() && ids[same] == last_ids_[same]) ++same;
    auto& blocks = workload_.blocks;
    const std::size_t first = blocks.size();
    blocks.resize(first + whole);
    std::copy_n(blocks.begin() + static_cast<std::ptrdiff_t>(last_first_), same,
                blocks.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = same; i < whole; ++i) blocks[first + i] = dense(ids[i]);
    last_ids_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(whole));
    last_first_ = first;
  }
  // Most ids were met earlier in the same conversation, whose table stays in the processor's cache.
  std::uint64_t dense(std::uint64_t id) {
    const auto [it, fresh] = known_.try_emplace(id, 0);
    if (fresh) it->second = all_.try_emplace(id, all_.size()).first->second;
    return it->second;
  }

  Workload& workload_;
  const AgentTraceOptions& options_;
  std::uint32_t conversation_ = kNoConversation;
  std::vector<std::uint64_t> last_ids_;  // of the request before, as the trace names them
  std::size_t last_first_ = 0;           // where they stand in Workload::blocks
  absl::flat_hash_map<std::uint64_t, std::uint64_t> known_, all_;
};

/// One pass over the file. `start_us` runs on from pass to pass.
Status play(const std::string& path, const AgentTraceOptions& options, std::uint64_t pass, SplitMix64& random,
            double& start_us, std::uint32_t& conversations, Builder& builder) {
  TraceOptions reading;
  reading.format = TraceFormat::weka;
  reading.share_system_prompts = options.share_system_prompts;
  reading.block_salt = pass;
  auto reader = TraceReader::open(path, {}, reading);
  if (!reader) return reader.error();
  std::uint64_t line = 0;
  std::size_t taken = 0;
  TraceRecord record;
  while (true) {
    auto given = reader->next(record);
    if (!given) return given.error();
    if (!*given) return {};
    if (reader->line() != line) {
      if (options.limit != 0 && taken == options.limit) return {};
      line = reader->line();
      ++taken;
      ++conversations;
      start_us += random.exponential() * 1e6 / options.conversations_per_second;
    }
    if (const Status added = builder.add(record, static_cast<std::int64_t>(start_us), conversations - 1); !added) {
      std::string place = path;
      place.append(":").append(std::to_string(line)).append(": ").append(added.error().message);
      return Error{added.code(), std::move(place), kNoOffset};
    }
  }
}

}  // namespace

Result<Workload> read_agent_trace(const std::string& path, const AgentTraceOptions& options) {
  if (!(options.conversations_per_second > 0))
    return Error{Code::invalid_argument, "conversations per second must be positive", kNoOffset};
  Workload workload;
  workload.name = "agents";
  Builder builder(workload, options);
  SplitMix64 random{options.seed};
  double start_us = 0;
  std::uint32_t conversations = 0;
  for (std::uint64_t pass = 0; pass < std::max<std::size_t>(1, options.repeats); ++pass) {
    if (auto played = play(path, options, pass, random, start_us, conversations, builder); !played)
      return played.error();
  }
  builder.finish();
  return workload;
}

}  // namespace warmroute::trace
