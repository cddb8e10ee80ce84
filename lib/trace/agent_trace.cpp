// The kv-cache-tester form of coding agents' conversations, one per line, as closed loops.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "simdjson.h"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {
namespace {

namespace dom = simdjson::dom;

constexpr std::int64_t kMaxTokens = 100'000'000;

Error broken(Code code, std::string why) { return Error{code, std::move(why), kNoOffset}; }

Result<std::string> read_file(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  std::string text;
  std::array<char, 1 << 16> buffer{};
  int got = 0;
  while ((got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  int code = Z_OK;
  gzerror(file, &code);
  gzclose(file);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) return Error{Code::io, path + ": cannot read on", kNoOffset};
  return text;
}

/// Makes one conversation after the other part of the workload.
class Builder {
 public:
  Builder(Workload& workload, const AgentTraceOptions& options) : workload_(workload), options_(options) {}

  Status add(const dom::element& line, std::int64_t start_us) {
    dom::object object;
    dom::array turns;
    std::int64_t block = 0, tools = 0, system = 0;
    if (line.get(object) != simdjson::SUCCESS) return broken(Code::not_an_object, "is not a JSON object");
    if (object["block_size"].get(block) != simdjson::SUCCESS || block < 1 || block > kMaxTokens)
      return broken(Code::missing_field, "block_size is missing or not positive");
    if (object["requests"].get(turns) != simdjson::SUCCESS)
      return broken(Code::missing_field, "requests is missing or no array");
    if (object["tool_tokens"].get(tools) != simdjson::SUCCESS) tools = 0;
    if (object["system_tokens"].get(system) != simdjson::SUCCESS) system = 0;
    if (workload_.requests.empty()) workload_.block_tokens = block;
    if (block != workload_.block_tokens) return broken(Code::value_out_of_range, "block_size differs between lines");
    local_.clear();
    const std::int64_t shared = options_.share_system_prompts ? (tools + system) / block : 0;
    const std::uint64_t system_key = static_cast<std::uint64_t>(tools) << 32 | static_cast<std::uint64_t>(system);
    std::uint32_t last = kNoRequest;
    for (const dom::element turn : turns) {
      dom::array fields;
      if (turn.get(fields) == simdjson::SUCCESS) {
        if (auto s = add_turn(fields, start_us, last, last == kNoRequest ? shared : 0, system_key, last); !s) return s;
        continue;
      }
      dom::array chain;
      dom::object sub;
      if (turn.get(sub) != simdjson::SUCCESS || sub["sub"].get(chain) != simdjson::SUCCESS)
        return broken(Code::wrong_type, "a request is neither an array nor a sub-agent");
      std::uint32_t last_of_sub = last;
      for (const dom::element sub_turn : chain) {
        if (sub_turn.get(fields) != simdjson::SUCCESS)
          return broken(Code::wrong_type, "a sub-agent's request is no array");
        if (auto s = add_turn(fields, start_us, last_of_sub, 0, 0, last_of_sub); !s) return s;
      }
    }
    ++conversation_;
    return {};
  }
  void finish() { workload_.distinct_blocks = next_id_; }

 private:
  // [t, input, output, api_time, think_time, [first_id, count, ...]]; `made` is the new request.
  Status add_turn(const dom::array& fields, std::int64_t start_us, std::uint32_t behind, std::int64_t shared,
                  std::uint64_t system_key, std::uint32_t& made) {
    WorkloadRequest request;
    double think = 0;
    dom::array runs;
    if (fields.at(1).get(request.input_tokens) != simdjson::SUCCESS ||
        fields.at(2).get(request.output_tokens) != simdjson::SUCCESS || fields.at(4).get(think) != simdjson::SUCCESS ||
        fields.at(5).get(runs) != simdjson::SUCCESS)
      return broken(Code::wrong_type, "a request is not [t, input, output, api_time, think_time, [runs]]");
    if (request.input_tokens > kMaxTokens || request.output_tokens > kMaxTokens || !(think < 1e9))
      return broken(Code::value_out_of_range, "a count or a time of a request is absurd");
    request.input_tokens = std::max<std::int64_t>(1, request.input_tokens);
    request.output_tokens = std::max<std::int64_t>(1, request.output_tokens);
    request.conversation = conversation_;
    request.first_block = workload_.blocks.size();
    if (auto s = add_blocks(runs, request.input_tokens / workload_.block_tokens, shared, system_key); !s) return s;
    request.block_count = static_cast<std::uint32_t>(workload_.blocks.size() - request.first_block);
    const auto index = static_cast<std::uint32_t>(workload_.requests.size());
    if (behind == kNoRequest) {
      request.arrival_us = start_us;
    } else {
      request.follows = true;
      request.delay_us = std::min<std::int64_t>(options_.think_cap_us, std::llround(std::max(0.0, think) * 1e6));
      WorkloadRequest& before = workload_.requests[behind];
      request.next_sibling = std::exchange(before.first_follower, index);
    }
    workload_.requests.push_back(request);
    made = index;
    return {};
  }

  Status add_blocks(const dom::array& runs, std::int64_t whole, std::int64_t shared, std::uint64_t system_key) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i + 1 < runs.size() && at < whole; i += 2) {
      std::int64_t first = 0, count = 0;
      if (runs.at(i).get(first) != simdjson::SUCCESS || runs.at(i + 1).get(count) != simdjson::SUCCESS || count < 0 ||
          count > kMaxTokens)
        return broken(Code::wrong_type, "runs are not [first_id, count, ...]");
      for (std::int64_t k = 0; k < count && at < whole; ++k, ++at)
        workload_.blocks.push_back(id_of(first + k, at, shared, system_key));
    }
    return {};
  }

  std::uint64_t id_of(std::int64_t local, std::int64_t at, std::int64_t shared, std::uint64_t system_key) {
    const auto [it, fresh] = local_.try_emplace(local, next_id_);
    if (!fresh) return it->second;
    if (at < shared) {
      auto& ids = system_prompts_[system_key];
      if (static_cast<std::size_t>(at) < ids.size()) return it->second = ids[static_cast<std::size_t>(at)];
      if (static_cast<std::size_t>(at) == ids.size()) ids.push_back(next_id_);
    }
    return next_id_++;
  }

  Workload& workload_;
  const AgentTraceOptions& options_;
  absl::flat_hash_map<std::int64_t, std::uint64_t> local_;
  absl::flat_hash_map<std::uint64_t, std::vector<std::uint64_t>> system_prompts_;
  std::uint64_t next_id_ = 0;
  std::uint32_t conversation_ = 0;
};

}  // namespace

Result<Workload> read_agent_trace(const std::string& path, const AgentTraceOptions& options) {
  if (!(options.conversations_per_second > 0))
    return broken(Code::invalid_argument, "conversations per second must be positive");
  auto text = read_file(path);
  if (!text) return text.error();
  Workload workload;
  workload.name = "agents";
  Builder builder(workload, options);
  SplitMix64 random{options.seed};
  dom::parser parser;
  double start_us = 0;
  for (std::size_t repeat = 0; repeat < std::max<std::size_t>(1, options.repeats); ++repeat) {
    std::size_t number = 0, taken = 0;
    for (std::size_t begin = 0; begin < text->size() && (options.limit == 0 || taken < options.limit);) {
      const std::size_t end = std::min(text->find('\n', begin), text->size());
      const std::string line = text->substr(begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      dom::element element;
      const auto where = [&](std::string_view why) {
        std::string place = path;
        place.append(": line ").append(std::to_string(number)).append(": ").append(why);
        return place;
      };
      if (const auto e = parser.parse(line).get(element); e != simdjson::SUCCESS)
        return broken(Code::invalid_json, where(simdjson::error_message(e)));
      start_us += random.exponential() * 1e6 / options.conversations_per_second;
      if (const Status added = builder.add(element, static_cast<std::int64_t>(start_us)); !added)
        return broken(added.code(), where(added.error().message));
      ++taken;
    }
  }
  builder.finish();
  return workload;
}

}  // namespace warmroute::trace
