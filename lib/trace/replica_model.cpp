// The step scheduler of one simulated replica. The rules, in the order in which a step applies them: decodes in order
// of admission (preempting the newest when blocks run out), chunks of running prompts, admissions; commits and tokens
// at its end.
#include "warmroute/trace/replica_model.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/block_cache.hpp"

namespace warmroute::trace {
namespace {

constexpr std::int64_t kPicosPerMicro = 1'000'000;

// Floor, per token, per pair, per context token, overhead (ps), KV tokens, cents per hour, ranks that step together,
// bytes of KV a token (layers x 2 x KV heads x 128 values of 2 bytes; moe: 576 values x 61 layers).
// F and a of the 8b and 70b on A100 and H100 are fitted to published operator times (they include the all-reduce at
// 70b), b and k follow from FLOP/s and memory bandwidth.
// H200: the H100's arithmetic (a, b) with 141 GB at 4.8 TB/s instead of 80 GB at 3.35 (NVIDIA data sheets), so k and
// the part of F that reads weights are 0.70 of the H100's: 8b 16 GB / 4.8 TB/s = 3.3 of 4.8 ms, 70b 17.6 GB a GPU = 3.7
// of 5.3 ms. KV at 0.9 of memory less the weights: (127 - 16) / (72 - 16) and (1,015 - 141) / (576 - 141) of the
// H100's.
// moe-dp8-h200: one of 8 data-parallel ranks of a DeepSeek-V3-like model (671e9 parameters in FP8, 37e9 active, 61
// layers) on 8 H200. F: at a batch of some hundred tokens every expert is read, 84 GB a GPU / 4.8 TB/s = 17.5 ms, and
// 2 x 61 all-to-alls of 60 us. a: 52,300 input tokens/s per 8 H100 (lmsys.org/blog/2025-05-05-large-scale-ep) = 0.153
// ms per token and rank. b: 128 heads x (192 + 128) x 2 x 61 = 5.0 MFLOP a pair at 0.4 PFLOP/s. k: 576 values x 2 bytes
// x 61 = 70 KB of KV a token, at 70 % of 4.8 TB/s. KV: 127 GB less 84 of experts and 10 of attention = 33 GB.
// Prices are an assumption, 1.80, 3 and 3.80 dollars a GPU-hour, the order of today's on-demand lists: overwrite them.
constexpr std::array<HardwareProfile, 7> kProfiles{{
    {"8b-a100", 9'700'000'000, 67'000'000, 2'800, 90'000, 1'000'000'000, 404'480, 180, 1, 131'072},
    {"8b-h100", 6'700'000'000, 24'000'000, 1'300, 56'000, 1'000'000'000, 404'480, 300, 1, 131'072},
    {"8b-h200", 5'200'000'000, 24'000'000, 1'300, 39'000, 1'000'000'000, 801'280, 380, 1, 131'072},
    {"70b-8xa100", 17'000'000'000, 100'000'000, 1'700, 28'000, 1'000'000'000, 1'254'400, 1'440, 1, 327'680},
    {"70b-8xh100", 12'000'000'000, 42'000'000, 800, 17'000, 1'000'000'000, 1'254'400, 2'400, 1, 327'680},
    {"70b-8xh200", 10'400'000'000, 42'000'000, 800, 12'000, 1'000'000'000, 2'519'040, 3'040, 1, 327'680},
    {"moe-dp8-h200", 25'000'000'000, 153'000'000, 12'500, 21'000, 1'000'000'000, 469'504, 380, 8, 70'272},
}};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

struct Request {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> blocks;   // whole prompt blocks
  std::vector<BlockCache::Node> held;  // cached blocks referenced, a prefix of `blocks`
  std::int64_t private_blocks = 0;
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t generated = 0;
  std::int64_t target = 0;    // tokens to compute before the next token comes: input, plus generated when preempted
  std::int64_t computed = 0;  // tokens in the KV cache
  std::int64_t received = 0;  // of them, the first time, computed elsewhere
  std::int64_t attempt = 0;
  bool is_running = false;

  [[nodiscard]] bool decodes() const noexcept { return computed >= target; }
  [[nodiscard]] std::int64_t owned_blocks() const noexcept {
    return static_cast<std::int64_t>(held.size()) + private_blocks;
  }
};

struct PlannedWork {
  Request* request;         // null: cancelled while the step ran
  std::int64_t new_tokens;  // prompt tokens; 0 for a decode
};

}  // namespace

std::span<const HardwareProfile> hardware_profiles() noexcept { return kProfiles; }

const HardwareProfile* find_hardware_profile(std::string_view name) noexcept {
  const auto it = std::find_if(kProfiles.begin(), kProfiles.end(), [&](const auto& p) { return p.name == name; });
  return it == kProfiles.end() ? nullptr : &*it;
}

struct ReplicaModel::State {
  explicit State(const ReplicaModelConfig& c)
      : config(c), cache((c.capacity_tokens > 0 ? c.capacity_tokens : c.hardware.kv_tokens) / c.block_tokens) {}

  void plan_decodes(std::int64_t now_us, ReplicaSink& sink);
  bool take_decode_block(Request& request, std::int64_t now_us, ReplicaSink& sink);
  void preempt_newest(std::int64_t now_us, ReplicaSink& sink);
  void plan_prefill(Request& request, std::int64_t budget);
  bool admit(Request& request, std::int64_t now_us, ReplicaSink& sink);
  void plan_admissions(std::int64_t now_us, ReplicaSink& sink);
  void begin_step(std::int64_t now_us, ReplicaSink& sink);
  void end_step(ReplicaSink& sink);
  void commit(Request& request, ReplicaSink& sink);
  void deliver_token(Request& request, ReplicaSink& sink);
  void take_private(Request& request, std::int64_t count, std::int64_t now_us, ReplicaSink& sink);
  void release(Request& request);
  void forget(Request& request);
  // What of its prompt is still to be computed enters (sign 1) or leaves (-1) the pending work.
  void count_pending(const Request& request, std::int64_t sign) noexcept {
    const std::int64_t left = request.target - request.computed;
    if (left <= 0) return;
    pending_prefill += sign * left;
    pending_pairs += sign * HardwareProfile::pairs(left, request.computed);
  }
  [[nodiscard]] std::int64_t max_match(const Request& request) const noexcept {
    return std::min(static_cast<std::int64_t>(request.blocks.size()), (request.target - 1) / config.block_tokens);
  }

  ReplicaModelConfig config;
  BlockCache cache;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Request>> requests;
  std::deque<Request*> queue;
  std::vector<Request*> running;  // in order of admission
  std::vector<PlannedWork> plan;  // of the running step
  std::int64_t planned_tokens = 0;
  std::int64_t planned_pairs = 0;
  std::int64_t planned_context = 0;
  std::int64_t planned_prefill = 0;
  std::int64_t step_start_us = 0;
  std::int64_t step_end_us = 0;
  std::int64_t ready_us = 0;  // from when idle work may start
  bool in_step = false;
  bool preempted_in_step = false;
  std::int64_t pending_prefill = 0;
  std::int64_t pending_pairs = 0;
  std::int64_t tokens_in_flight = 0;
  std::int64_t busy_us = 0;
  std::int64_t prefill_work_ps = 0;
  std::int64_t steps = 0;
  std::int64_t rejected = 0;
  std::int64_t preemptions = 0;
};

void ReplicaModel::State::take_private(Request& request, std::int64_t count, std::int64_t now_us, ReplicaSink& sink) {
  request.private_blocks += count;
  cache.take_private(count, [&](std::uint64_t block) { sink.evicted(block, now_us); });
}

// Drops references deepest first, which is what keeps the LRU list leaf-first.
void ReplicaModel::State::release(Request& request) {
  for (auto it = request.held.rbegin(); it != request.held.rend(); ++it) cache.release(*it);
  request.held.clear();
  cache.free_private(request.private_blocks);
  request.private_blocks = 0;
}

void ReplicaModel::State::forget(Request& request) {
  release(request);
  count_pending(request, -1);
  tokens_in_flight -= request.input + request.generated;
  if (request.is_running) std::erase(running, &request);
  requests.erase(request.id);
}

void ReplicaModel::State::preempt_newest(std::int64_t now_us, ReplicaSink& sink) {
  Request& request = *running.back();
  running.pop_back();
  release(request);
  count_pending(request, -1);
  request.is_running = false;
  request.computed = request.received = 0;
  request.target = request.input + request.generated;
  count_pending(request, 1);
  ++request.attempt;
  queue.push_front(&request);
  preempted_in_step = true;
  ++preemptions;
  sink.preempted(request.id, now_us);
}

// returns: whether the request still runs and has room for one more token.
bool ReplicaModel::State::take_decode_block(Request& request, std::int64_t now_us, ReplicaSink& sink) {
  if (ceil_div(request.computed + 1, config.block_tokens) <= request.owned_blocks()) return true;
  while (cache.available() < 1) {
    const bool itself = running.back() == &request;
    preempt_newest(now_us, sink);
    if (itself) return false;
  }
  take_private(request, 1, now_us, sink);
  return true;
}

void ReplicaModel::State::plan_decodes(std::int64_t now_us, ReplicaSink& sink) {
  for (std::size_t i = 0; i < running.size(); ++i) {  // preemption shortens the list from its end
    Request& request = *running[i];
    if (!request.decodes()) continue;
    if (!take_decode_block(request, now_us, sink)) break;
    plan.push_back({&request, 0});
    planned_tokens += 1;
    planned_context += request.computed + 1;
  }
}

void ReplicaModel::State::plan_prefill(Request& request, std::int64_t budget) {
  const std::int64_t chunk = std::min(budget, request.target - request.computed);
  plan.push_back({&request, chunk});
  planned_tokens += chunk;
  planned_prefill += chunk;
  planned_pairs += HardwareProfile::pairs(chunk, request.computed);
}

// Blocks that running requests hold anyway cost nothing; idle ones that match do, since they can no longer be evicted.
// So the test needs only the leading blocks that are referenced now, and a blocked head of the queue is cheap to look
// at again.
bool ReplicaModel::State::admit(Request& request, std::int64_t now_us, ReplicaSink& sink) {
  const std::int64_t limit = max_match(request);
  std::int64_t shared = 0;
  for (; shared < limit; ++shared) {
    const auto node = cache.find(request.blocks[static_cast<std::size_t>(shared)]);
    if (node == BlockCache::kNone || !cache.is_referenced(node)) break;
  }
  const std::int64_t watermark = running.empty() ? 0 : cache.capacity() * config.watermark_permille / 1000;
  const std::int64_t blocks = ceil_div(request.target, config.block_tokens);
  if (blocks - shared + watermark > cache.available()) return false;

  for (std::int64_t i = 0; i < limit; ++i) {
    const auto node = cache.find(request.blocks[static_cast<std::size_t>(i)]);
    if (node == BlockCache::kNone) break;
    cache.reference(node);
    request.held.push_back(node);
  }
  auto matched = static_cast<std::int64_t>(request.held.size());
  take_private(request, blocks - matched, now_us, sink);
  if (config.remote != nullptr) {  // these need room here, but no computing
    while (matched < limit && config.remote->holds(request.blocks[static_cast<std::size_t>(matched)])) ++matched;
  }
  count_pending(request, -1);
  request.computed = std::max(matched * config.block_tokens, request.received);
  count_pending(request, 1);
  request.is_running = true;
  running.push_back(&request);
  sink.admitted(request.id, now_us, request.computed, request.attempt);
  return true;
}

void ReplicaModel::State::plan_admissions(std::int64_t now_us, ReplicaSink& sink) {
  while (!queue.empty() && planned_tokens < config.step_token_budget &&
         static_cast<std::int64_t>(running.size()) < config.max_running) {
    Request& request = *queue.front();
    if (!admit(request, now_us, sink)) break;
    queue.pop_front();
    plan_prefill(request, config.step_token_budget - planned_tokens);
  }
}

void ReplicaModel::State::begin_step(std::int64_t now_us, ReplicaSink& sink) {
  plan.clear();
  planned_tokens = planned_pairs = planned_context = planned_prefill = 0;
  preempted_in_step = false;
  plan_decodes(now_us, sink);
  for (Request* request : running) {
    if (planned_tokens >= config.step_token_budget) break;
    if (!request->decodes()) plan_prefill(*request, config.step_token_budget - planned_tokens);
  }
  if (!preempted_in_step) plan_admissions(now_us, sink);
  assert(!plan.empty());

  const HardwareProfile& hw = config.hardware;
  const std::int64_t work_ps = std::max(hw.floor_ps, hw.per_token_ps * planned_tokens) +
                               hw.per_pair_ps * planned_pairs + hw.per_context_ps * planned_context + hw.overhead_ps;
  const std::int64_t scaled_ps = work_ps * 1000 / config.speed_permille;
  const std::int64_t length_us = std::max<std::int64_t>(1, (scaled_ps + kPicosPerMicro / 2) / kPicosPerMicro);
  in_step = true;
  step_start_us = now_us;
  step_end_us = now_us + length_us;
}

// If another request committed the block meanwhile, the private copy is dropped and the cached one referenced.
void ReplicaModel::State::commit(Request& request, ReplicaSink& sink) {
  const auto whole = std::min(request.blocks.size(), static_cast<std::size_t>(request.computed / config.block_tokens));
  for (std::size_t i = request.held.size(); i < whole; ++i) {
    const std::uint64_t block = request.blocks[i];
    auto node = cache.find(block);
    if (node == BlockCache::kNone) {
      node = cache.commit(block);
      sink.committed(block, i == 0 ? 0 : request.blocks[i - 1], static_cast<std::int64_t>(i), step_end_us);
    } else {
      cache.free_private(1);
      cache.reference(node);
    }
    --request.private_blocks;
    request.held.push_back(node);
  }
}

void ReplicaModel::State::deliver_token(Request& request, ReplicaSink& sink) {
  ++request.generated;
  ++tokens_in_flight;
  const std::uint64_t id = request.id;
  sink.token(id, step_end_us, request.generated);
  if (request.generated < request.output) return;
  forget(request);
  sink.finished(id, step_end_us);
}

void ReplicaModel::State::end_step(ReplicaSink& sink) {
  in_step = false;
  ready_us = step_end_us;
  busy_us += step_end_us - step_start_us;
  prefill_work_ps += config.hardware.per_token_ps * planned_prefill + config.hardware.per_pair_ps * planned_pairs;
  ++steps;
  for (const PlannedWork& work : plan) {
    if (work.request == nullptr || work.new_tokens == 0) continue;
    count_pending(*work.request, -1);
    work.request->computed += work.new_tokens;
    count_pending(*work.request, 1);
    commit(*work.request, sink);
  }
  for (const PlannedWork& work : plan) {
    if (work.request == nullptr) continue;
    if (work.new_tokens == 0) ++work.request->computed;
    if (work.request->decodes()) deliver_token(*work.request, sink);
  }
  plan.clear();
}

ReplicaModel::ReplicaModel(const ReplicaModelConfig& config) : state_(std::make_unique<State>(config)) {
  assert(config.block_tokens > 0 && config.step_token_budget > 0 && config.max_running > 0 &&
         config.speed_permille > 0);
}
ReplicaModel::ReplicaModel(ReplicaModel&&) noexcept = default;
ReplicaModel& ReplicaModel::operator=(ReplicaModel&&) noexcept = default;
ReplicaModel::~ReplicaModel() = default;

bool ReplicaModel::submit(std::uint64_t id, std::span<const std::uint64_t> blocks, std::int64_t input_tokens,
                          std::int64_t output_tokens, std::int64_t now_us, std::int64_t received_tokens) {
  State& s = *state_;
  const std::int64_t input = std::max<std::int64_t>(1, input_tokens);
  const std::int64_t output = std::max<std::int64_t>(1, output_tokens);
  const bool fits = input <= s.cache.capacity() * s.config.block_tokens &&
                    output <= s.cache.capacity() * s.config.block_tokens &&
                    ceil_div(input + output, s.config.block_tokens) <= s.cache.capacity();
  if (!fits || s.requests.contains(id)) {
    ++s.rejected;
    return false;
  }
  auto request = std::make_unique<Request>();
  const auto whole = std::min(blocks.size(), static_cast<std::size_t>(input / s.config.block_tokens));
  request->id = id;
  request->blocks.assign(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(whole));
  request->input = request->target = input;
  request->output = output;
  request->computed = request->received = std::clamp<std::int64_t>(received_tokens, 0, input - 1);
  s.count_pending(*request, 1);
  s.tokens_in_flight += input;
  if (s.queue.empty() && s.running.empty()) s.ready_us = std::max(s.ready_us, now_us);
  s.queue.push_back(request.get());
  s.requests.emplace(id, std::move(request));
  return true;
}

bool ReplicaModel::cancel(std::uint64_t id) {
  State& s = *state_;
  const auto it = s.requests.find(id);
  if (it == s.requests.end()) return false;
  Request* request = it->second.get();
  if (!request->is_running) std::erase(s.queue, request);
  for (PlannedWork& work : s.plan) {
    if (work.request == request) work.request = nullptr;
  }
  s.forget(*request);
  return true;
}

std::optional<std::int64_t> ReplicaModel::next_event_us() const noexcept {
  if (!state_->in_step) return std::nullopt;
  return state_->step_end_us;
}

void ReplicaModel::advance(std::int64_t now_us, ReplicaSink& sink) {
  State& s = *state_;
  while (true) {
    if (s.in_step) {
      if (s.step_end_us > now_us) return;
      s.end_step(sink);
    }
    if (s.ready_us >= now_us || (s.queue.empty() && s.running.empty())) return;
    s.begin_step(s.ready_us, sink);
  }
}

void ReplicaModel::start(std::int64_t now_us, ReplicaSink& sink) {
  State& s = *state_;
  if (s.in_step || (s.queue.empty() && s.running.empty())) return;
  s.begin_step(std::max(now_us, s.ready_us), sink);
}

void ReplicaModel::stretch_step(std::int64_t end_us) noexcept {
  if (state_->in_step) state_->step_end_us = std::max(state_->step_end_us, end_us);
}

void ReplicaModel::set_speed(std::int64_t speed_permille) noexcept {
  assert(speed_permille > 0);
  state_->config.speed_permille = speed_permille;
}

std::vector<std::uint64_t> ReplicaModel::crash() {
  State& s = *state_;
  std::vector<std::uint64_t> lost;
  for (const Request* request : s.running) lost.push_back(request->id);
  for (const Request* request : s.queue) lost.push_back(request->id);
  s.running.clear();
  s.queue.clear();
  s.plan.clear();
  s.requests.clear();
  s.cache.clear();
  s.in_step = false;
  s.pending_prefill = s.pending_pairs = s.tokens_in_flight = 0;
  return lost;
}

std::int64_t ReplicaModel::match_blocks(std::span<const std::uint64_t> blocks, std::int64_t input_tokens) const {
  const auto limit = std::min(static_cast<std::int64_t>(blocks.size()),
                              (std::max<std::int64_t>(1, input_tokens) - 1) / state_->config.block_tokens);
  std::int64_t matched = 0;
  while (matched < limit && state_->cache.find(blocks[static_cast<std::size_t>(matched)]) != BlockCache::kNone)
    ++matched;
  return matched;
}

std::int64_t ReplicaModel::block_tokens() const noexcept { return state_->config.block_tokens; }
std::int64_t ReplicaModel::capacity_blocks() const noexcept { return state_->cache.capacity(); }
std::int64_t ReplicaModel::cached_blocks() const noexcept { return state_->cache.cached(); }
std::int64_t ReplicaModel::referenced_blocks() const noexcept { return state_->cache.referenced(); }
std::int64_t ReplicaModel::private_blocks() const noexcept { return state_->cache.private_blocks(); }
double ReplicaModel::kv_usage() const noexcept {
  const std::int64_t capacity = state_->cache.capacity();
  if (capacity == 0) return 0.0;
  return static_cast<double>(capacity - state_->cache.available()) / static_cast<double>(capacity);
}
std::int64_t ReplicaModel::waiting() const noexcept { return static_cast<std::int64_t>(state_->queue.size()); }
std::int64_t ReplicaModel::running() const noexcept { return static_cast<std::int64_t>(state_->running.size()); }
std::int64_t ReplicaModel::pending_prefill_tokens() const noexcept { return state_->pending_prefill; }
std::int64_t ReplicaModel::uncached_prefill_tokens() const {
  std::int64_t out = state_->pending_prefill;
  for (const Request* request : state_->queue) {
    const std::int64_t cached = match_blocks(request->blocks, request->target) * block_tokens();
    out -= std::max<std::int64_t>(0, cached - request->computed);
  }
  return out;
}
std::int64_t ReplicaModel::pending_prefill_ps() const noexcept {
  const HardwareProfile& hw = state_->config.hardware;
  return hw.per_token_ps * state_->pending_prefill + hw.per_pair_ps * state_->pending_pairs;
}
std::int64_t ReplicaModel::tokens_in_flight() const noexcept { return state_->tokens_in_flight; }
std::int64_t ReplicaModel::busy_us() const noexcept { return state_->busy_us; }
std::int64_t ReplicaModel::prefill_work_ps() const noexcept { return state_->prefill_work_ps; }
std::int64_t ReplicaModel::steps() const noexcept { return state_->steps; }
std::int64_t ReplicaModel::rejected() const noexcept { return state_->rejected; }
std::int64_t ReplicaModel::preemptions() const noexcept { return state_->preemptions; }
std::int64_t ReplicaModel::evictions() const noexcept { return state_->cache.evictions(); }

}  // namespace warmroute::trace
