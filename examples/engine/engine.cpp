#include "engine/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

namespace warmroute::examples {

using Clock = std::chrono::steady_clock;

Engine::Engine(asio::io_context& context, const EngineOptions& options)
    : options_(options),
      model_(options.service),
      random_(options.seed),
      start_(Clock::now()),
      context_(context),
      step_timer_(context) {}

std::int64_t Engine::now_us() const {
  const auto elapsed = std::chrono::duration<double, std::micro>(Clock::now() - start_).count();
  return static_cast<std::int64_t>(elapsed * options_.time_scale);
}

Fate Engine::draw_fate() {
  // A crash is what it says: no farewell to clients, no destructors.
  if (++requests_ == options_.crash_after) std::_Exit(1);
  const double draw = static_cast<double>(random_.next() >> 11) * 0x1.0p-53;
  if (draw < options_.error_rate) return Fate::fail;
  if (draw < options_.error_rate + options_.hang_rate) return Fate::hang;
  return Fate::serve;
}

void Engine::report_cache(EventForm form, std::uint64_t seed, CacheLog::Sink sink) {
  cache_log_.emplace(form, model_.block_tokens(), seed, std::move(sink));
}

std::shared_ptr<Job> Engine::submit(Prompt prompt, std::int64_t input_tokens, std::int64_t output_tokens,
                                    std::int64_t received_tokens) {
  const std::int64_t now = now_us();
  model_.advance(now, *this);
  auto job = std::make_shared<Job>(context_);
  job->id = ++last_id_;
  job->input_tokens = input_tokens;
  job->output_tokens = output_tokens;
  job->submitted_at = Clock::now();
  const bool fits = model_.submit(job->id, prompt.blocks, input_tokens, output_tokens, now, received_tokens);
  if (fits) {
    if (cache_log_) job->prompt = std::move(prompt);
    jobs_.emplace(job->id, job);
    model_.start(now, *this);
  }
  publish_cache();
  arm_timer();
  if (!fits) return nullptr;
  return job;
}

void Engine::cancel(const std::shared_ptr<Job>& job) {
  if (job->is_over()) return;
  model_.advance(now_us(), *this);
  if (job->is_over()) return;
  model_.cancel(job->id);
  jobs_.erase(job->id);
  job->is_cancelled = true;
  job->changed.cancel();
  ++metrics_.aborted_requests;
  run_until_now();
}

std::int64_t Engine::max_model_tokens() const noexcept { return model_.capacity_blocks() * model_.block_tokens(); }

void Engine::run_until_now() {
  const std::int64_t now = now_us();
  model_.advance(now, *this);
  model_.start(now, *this);
  publish_cache();
  arm_timer();
}

bool Engine::clear_cache() {
  model_.advance(now_us(), *this);
  if (!jobs_.empty()) return false;
  (void)model_.crash();  // of an engine without requests that is the cache alone
  if (cache_log_) cache_log_->cleared(now_us());
  publish_cache();
  arm_timer();
  return true;
}

void Engine::restart(std::uint64_t seed) {
  (void)model_.crash();
  for (const auto& [id, job] : jobs_) {
    job->is_cancelled = true;
    job->changed.cancel();
  }
  jobs_.clear();
  committing_.reset();
  metrics_ = {};
  if (cache_log_) cache_log_->restart(seed);
  arm_timer();
}

void Engine::publish_cache() {
  if (cache_log_) cache_log_->flush();
}

// The timer may fire late; `advance` then starts the next step where the last one ended, so that lateness never adds
// up.
void Engine::arm_timer() {
  const auto next = model_.next_event_us();
  if (!next) {
    step_timer_.cancel();
    return;
  }
  const std::chrono::duration<double, std::micro> since_start(static_cast<double>(*next + 1) / options_.time_scale);
  step_timer_.expires_at(start_ + std::chrono::duration_cast<Clock::duration>(since_start));
  step_timer_.async_wait([this](error_code error) {
    if (!error) run_until_now();
  });
}

void Engine::admitted(std::uint64_t id, std::int64_t, std::int64_t cached_tokens, std::int64_t attempt) {
  if (attempt > 0) return;
  Job& job = *jobs_.at(id);
  job.cached_tokens = cached_tokens;
  metrics_.prefix_cache_queries += job.input_tokens;
  metrics_.prefix_cache_hits += cached_tokens;
}

void Engine::token(std::uint64_t id, std::int64_t, std::int64_t index) {
  Job& job = *jobs_.at(id);
  const auto now = Clock::now();
  if (index == 1) {
    metrics_.prompt_tokens += job.input_tokens;
    metrics_.ttft_seconds.observe(std::chrono::duration<double>(now - job.submitted_at).count());
  } else {
    metrics_.itl_seconds.observe(std::chrono::duration<double>(now - job.last_token_at).count());
  }
  ++metrics_.generation_tokens;
  job.last_token_at = now;
  job.generated = index;
  job.changed.cancel();
}

void Engine::finished(std::uint64_t id, std::int64_t) {
  const auto it = jobs_.find(id);
  it->second->is_finished = true;
  it->second->changed.cancel();
  jobs_.erase(it);
  ++metrics_.finished_requests;
}

// The model does not say whose block it is; any request that has it at that depth has its tokens. Blocks of one request come one behind
// the other, so the one before is asked first.
void Engine::committed(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at_us) {
  if (!cache_log_) return;
  const auto at = static_cast<std::size_t>(depth);
  const auto has_it = [&](const Job& job) { return at < job.prompt.blocks.size() && job.prompt.blocks[at] == block; };
  if (committing_ == nullptr || !has_it(*committing_)) {
    const auto it = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) { return has_it(*entry.second); });
    committing_ = it->second;
  }
  const Prompt& prompt = committing_->prompt;
  const auto size = static_cast<std::size_t>(model_.block_tokens());
  const std::span<const std::uint32_t> ids(prompt.token_ids);
  cache_log_->stored(block, parent, depth, at_us, {ids.subspan(at * size, size), prompt.adapter, prompt.cache_salt});
}

void Engine::evicted(std::uint64_t block, std::int64_t at_us) {
  if (cache_log_) cache_log_->removed(block, at_us);
}

EngineGauges Engine::gauges() const {
  EngineGauges gauges;
  gauges.running = model_.running();
  gauges.waiting = model_.waiting();
  gauges.kv_usage = model_.kv_usage();
  gauges.block_tokens = model_.block_tokens();
  gauges.blocks = model_.capacity_blocks();
  gauges.preemptions = model_.preemptions();
  gauges.waiting_tokens = model_.uncached_prefill_tokens();
  gauges.held_tokens = model_.tokens_in_flight();
  gauges.max_running = options_.service.max_running;
  return gauges;
}

std::string Engine::metrics_text() {
  run_until_now();
  return metrics_.text(options_.metrics_names, options_.model, gauges());
}

std::string Engine::loads_text(bool as_page, std::int64_t unix_seconds) {
  run_until_now();
  return metrics_.loads(as_page, unix_seconds, gauges());
}

}  // namespace warmroute::examples
