#include "replay/runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "replay/workload.hpp"

namespace warmroute::replay {

using namespace examples;  // the asio aliases

Runner::Runner(asio::io_context& context, Client& client, const RunnerOptions& options)
    : context_(context), client_(client), options_(options) {}

Clock::duration Runner::scaled(double simulated_seconds) const {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(simulated_seconds / options_.time_scale));
}

void Runner::run_trace(const std::vector<trace::TraceRecord>& records) {
  start_ = Clock::now();
  asio::co_spawn(context_, send_all(records), asio::detached);
  run(records.size());
}

void Runner::run_agents(const AgentsScenario& scenario) {
  start_ = Clock::now();
  trace::SplitMix64 random{options_.seed};
  double start_seconds = 0;
  for (std::int64_t agent = 0; agent < scenario.agents; ++agent) {
    asio::co_spawn(context_, run_agent(scenario, static_cast<std::size_t>(agent), start_seconds), asio::detached);
    start_seconds += 0.1 * random.exponential();
  }
  run(static_cast<std::size_t>(scenario.agents * scenario.turns));
}

void Runner::run(std::size_t expected) {
  expected_ = expected;
  if (expected == 0) return;
  asio::co_spawn(context_, show_progress(), asio::detached);
  context_.run();
}

Awaitable<void> Runner::sleep_until(Clock::time_point when) {
  asio::steady_timer timer{context_, when};
  error_code ignored;
  co_await timer.async_wait(into(ignored));
}

Awaitable<void> Runner::send_all(const std::vector<trace::TraceRecord>& records) {
  const std::int64_t first_us = records.front().arrival_us;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto due = start_ + scaled(static_cast<double>(records[i].arrival_us - first_us) / 1e6);
    if (due > Clock::now()) co_await sleep_until(due);
    asio::co_spawn(context_, send_one(records[i], i, due), asio::detached);
  }
}

Awaitable<void> Runner::send_one(const trace::TraceRecord& record_to_send, std::size_t index, Clock::time_point due) {
  ++sent_;
  const std::int64_t max_tokens = std::max<std::int64_t>(1, record_to_send.output_tokens);
  std::vector<Message> messages;
  messages.push_back({"user", trace_prompt(record_to_send, index, options_.seed)});
  std::string body = chat_body(options_.model, messages, max_tokens);
  messages.clear();
  Exchange exchange = co_await client_.complete(std::move(body), due, max_tokens, false);
  record(std::move(exchange));
}

// A turn adds the agent's new words to everything said before; the answer of a turn is part of the next prompt.
Awaitable<void> Runner::run_agent(const AgentsScenario& scenario, std::size_t agent, double start_seconds) {
  trace::SplitMix64 random{(options_.seed << 20) + agent + 1};
  std::vector<Message> messages;
  messages.push_back({"system", {}});
  const std::uint64_t system = agent % static_cast<std::uint64_t>(std::max<std::int64_t>(1, scenario.system_prompts));
  append_words(messages[0].content, TextKind::system, options_.seed + (system << 32), scenario.system_tokens);
  Clock::time_point due = start_ + scaled(start_seconds);
  std::int64_t known_tokens = 0;  // of this conversation, that some replica has computed
  for (std::int64_t turn = 0; turn < scenario.turns; ++turn) {
    const std::int64_t mean = scenario.turn_tokens;
    const std::int64_t added = mean > 0    ? random.between(mean - mean / 2, mean + mean / 2)
                               : turn == 0 ? random.between(256, 1'023)
                                           : random.between(128, 2'047);
    const std::int64_t output = scenario.answer_tokens > 0 ? scenario.answer_tokens : random.between(64, 511);
    messages.push_back({"user", {}});
    append_words(messages.back().content, TextKind::turn,
                 (options_.seed << 32) + agent * 1'000 + static_cast<std::uint64_t>(turn), added);
    co_await sleep_until(due);
    ++sent_;
    if (turn == 0 && !known_systems_.insert(system).second) known_tokens = scenario.system_tokens;
    std::string body = chat_body(options_.model, messages, output);
    Exchange exchange = co_await client_.complete(std::move(body), due, output, true);
    if (exchange.ok()) {
      bound_tokens_ += std::min(known_tokens, exchange.prompt_tokens);
      known_tokens = exchange.prompt_tokens;
    }
    messages.push_back({"assistant", std::move(exchange.text)});
    record(std::move(exchange));
    const double think = 0.5 + static_cast<double>(random.below(4'000)) / 1'000;  // 2.5 on average
    due = Clock::now() + scaled(scenario.think_seconds > 0 ? think / 2.5 * scenario.think_seconds : think);
  }
}

void Runner::record(Exchange exchange) {
  if (exchange.ok()) {
    ++ok_;
    ttft_sum_ms_ +=
        std::chrono::duration<double, std::milli>(exchange.first_token - exchange.due).count() * options_.time_scale;
    input_tokens_ += std::max<std::int64_t>(0, exchange.prompt_tokens);
    cached_tokens_ += std::max<std::int64_t>(0, exchange.cached_tokens);
  }
  exchanges_.push_back(std::move(exchange));
  if (exchanges_.size() < expected_) return;
  wall_seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  context_.stop();
}

std::string Runner::progress_line() const {
  const double ttft = ok_ > 0 ? ttft_sum_ms_ / static_cast<double>(ok_) : 0;
  const double hit =
      input_tokens_ > 0 ? 100.0 * static_cast<double>(cached_tokens_) / static_cast<double>(input_tokens_) : 0;
  char text[200];
  std::snprintf(
      text, sizeof text,
      "%4.0f s | sent %zu of %zu, answered %zu, in flight %zu | TTFT mean %.0f ms | cached %.1f %% | errors %lld",
      std::chrono::duration<double>(Clock::now() - start_).count(), sent_, expected_, exchanges_.size(),
      sent_ - exchanges_.size(), ttft, hit, static_cast<long long>(exchanges_.size()) - static_cast<long long>(ok_));
  return text;
}

// One line that is written over on a terminal; a line every ten seconds into a file.
Awaitable<void> Runner::show_progress() {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  while (true) {
    co_await sleep_until(Clock::now() + std::chrono::milliseconds(is_terminal ? 500 : 10'000));
    std::fprintf(stderr, is_terminal ? "\r\x1b[K%s" : "%s\n", progress_line().c_str());
    std::fflush(stderr);
  }
}

}  // namespace warmroute::replay
