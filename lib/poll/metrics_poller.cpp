// The thread that asks, and what becomes of the answers. Sockets are in scrape.cpp.
#include "warmroute/ingest/metrics_poller.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "poll/scrape.hpp"
#include "poll/url.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute {
namespace {

using poll::Clock;
using Scraping = poll::Scrape::State;

constexpr auto kLongestTurn = std::chrono::seconds(1);

Clock::duration duration_of(Nanos nanos) { return std::chrono::nanoseconds(nanos.value); }
Nanos nanos_of(Clock::duration d) { return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()}; }

Status check(const MetricsPollerOptions& options) {
  std::string faults;
  const auto require = [&](bool fine, const char* what) {
    if (!fine) faults.append(faults.empty() ? "" : "; ").append(what);
  };
  const auto within = [](Nanos value, Nanos low, Nanos high) { return value >= low && value <= high; };
  const Nanos hour = seconds(3'600);
  require(within(options.interval, milliseconds(1), hour), "interval must lie in 1 ms .. 1 h");
  require(within(options.timeout, milliseconds(1), hour), "timeout must lie in 1 ms .. 1 h");
  require(within(options.backoff_to, Nanos{0}, hour), "backoff_to must lie in 0 .. 1 h");
  require(options.jitter_percent <= 90, "jitter_percent must lie in 0..90");
  require(options.max_bytes >= 1, "max_bytes must be at least 1");
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "metrics poller: " + faults, kNoOffset};
}

}  // namespace

struct MetricsPoller::Impl {
  /// One target. What is below `status` belongs to the thread.
  struct Line {
    Line(const MetricsTarget& t, poll::Url url, const MetricsPollerOptions& options)
        : target(t), scrape(std::move(url), options.max_bytes, options.keep_alive) {}

    const MetricsTarget target;
    std::atomic<bool> removed{false};
    MetricsTargetStatus status;  // under Impl::shared
    Nanos last_success{0};       // the same; the router's clock
    bool ever = false;

    poll::Scrape scrape;
    EngineCounters counters;
    Clock::time_point due{};
    std::uint64_t failures_in_row = 0;
  };

  /// What applying one page came to.
  struct Applied {
    std::string error;  // empty: it was read, or nobody wanted to
    std::string engine;
    std::size_t skipped_lines = 0;
    std::size_t unmatched_ranks = 0;
    std::uint64_t signals = 0;
    bool restarted = false;
  };

  Impl(Router* r, MetricsPollerOptions o)
      : router(r), options(std::move(o)), random(options.seed), parser({.max_bytes = options.max_bytes}) {}
  ~Impl();

  Status begin();
  Status add(const MetricsTarget& target);
  Status remove(std::string_view name);
  [[nodiscard]] MetricsTargetStatus status_of(const Line& line, Nanos at) const;

  void wake() const;
  void run();
  void take_targets();
  void wait();
  void finish(Line& line);
  Applied apply(Line& line, Nanos at, Nanos took);
  void read_page(Line& line, Nanos at, Applied& outcome);
  void record(Line& line, const Applied& outcome, Nanos at, Nanos took, std::size_t bytes);
  void schedule(Line& line, bool good);
  [[nodiscard]] Clock::duration drawn(Clock::duration low, Clock::duration high);
  [[nodiscard]] Nanos now() const {
    return options.clock != nullptr ? options.clock(options.clock_user) : nanos_of(Clock::now().time_since_epoch());
  }
  void say(LogLevel level, const Line& line, const std::string& what) const {
    options.log(level, "metrics of " + line.status.name + ": " + what);
  }

  Router* router;
  MetricsPollerOptions options;
  std::thread thread;
  std::array<int, 2> bell{-1, -1};
  std::atomic<bool> stopping{false};

  mutable std::mutex shared;  // guards the two below and every line's status
  std::vector<std::shared_ptr<Line>> lines;
  bool changed = false;
  std::mutex applying;  // held while a page is handed out

  // the thread's own
  std::vector<std::shared_ptr<Line>> mine;
  std::vector<pollfd> polled;
  std::vector<Line*> waiting;  // whose polled[i + 1] is
  trace::SplitMix64 random;
  EngineMetricsParser parser;
};

// ---------------------------------------------------------------- callers' side

MetricsPoller::Impl::~Impl() {
  if (thread.joinable()) {
    stopping.store(true);
    wake();
    thread.join();
  }
  for (const int fd : bell) {
    if (fd >= 0) ::close(fd);
  }
}

Status MetricsPoller::Impl::begin() {
  if (auto fine = check(options); !fine) return fine;
  for (const EngineMetricsTable& table : options.tables) {
    if (auto set = parser.set_table(table); !set) return set;
  }
  if (::pipe(bell.data()) != 0) {
    return Error{Code::io, "metrics poller: no pipe: " + std::generic_category().message(errno), kNoOffset};
  }
  for (const int fd : bell) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error{Code::io, std::string("metrics poller: no thread: ") + error.what(), kNoOffset};
  }
  return {};
}

void MetricsPoller::Impl::wake() const {
  const char ring = 0;
  while (::write(bell[1], &ring, 1) < 0 && errno == EINTR) {}  // a full pipe wakes as well
}

Status MetricsPoller::Impl::add(const MetricsTarget& given) {
  auto url = poll::parse_url(given.url);
  if (!url) return url.error();
  MetricsTarget target = given;
  if (target.name.empty()) target.name = target.url;
  auto line = std::make_shared<Line>(target, std::move(*url), options);
  line->status.name = target.name;
  line->status.url = target.url;
  {
    const std::lock_guard lock(shared);
    for (const auto& other : lines) {
      if (other->target.name != target.name) continue;
      return Error{Code::already_exists, "'" + target.name + "' is polled already", kNoOffset};
    }
    lines.push_back(std::move(line));
    changed = true;
  }
  wake();
  return {};
}

Status MetricsPoller::Impl::remove(std::string_view name) {
  {
    const std::lock_guard lock(shared);
    const auto at =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line->target.name == name; });
    if (at == lines.end()) return Error{Code::not_found, "no such target is polled", kNoOffset};
    (*at)->removed.store(true);
    lines.erase(at);
    changed = true;
  }
  wake();
  if (std::this_thread::get_id() != thread.get_id()) const std::lock_guard done(applying);
  return {};
}

MetricsTargetStatus MetricsPoller::Impl::status_of(const Line& line, Nanos at) const {
  MetricsTargetStatus status = line.status;
  if (line.ever) status.age = std::max(Nanos{0}, at - line.last_success);
  return status;
}

// ---------------------------------------------------------------- the thread

void MetricsPoller::Impl::run() {
  while (!stopping.load()) {
    take_targets();
    const auto turn = Clock::now();
    for (const auto& line : mine) {
      if (stopping.load()) break;
      if (line->scrape.state() == Scraping::idle && line->due <= turn) line->scrape.begin(duration_of(options.timeout));
      line->scrape.expire(turn);
      if (!line->scrape.running() && line->scrape.state() != Scraping::idle) finish(*line);
    }
    wait();
  }
  mine.clear();
}

void MetricsPoller::Impl::take_targets() {
  std::vector<std::shared_ptr<Line>> gone;  // their connections are closed without the lock
  {
    const std::lock_guard lock(shared);
    if (!changed) return;
    changed = false;
    gone.swap(mine);
    mine = lines;
  }
  const auto turn = Clock::now();
  const auto first = std::min<Clock::duration>(duration_of(options.interval), std::chrono::seconds(1));
  for (const auto& line : mine) {
    if (line->due == Clock::time_point{}) line->due = turn + drawn(Clock::duration(0), first);
  }
}

void MetricsPoller::Impl::wait() {
  polled.assign(1, {bell[0], POLLIN, 0});
  waiting.clear();
  auto until = Clock::now() + kLongestTurn;
  for (const auto& line : mine) {
    const bool running = line->scrape.running();
    until = std::min(until, running ? line->scrape.deadline() : line->due);
    if (!running) continue;
    polled.push_back({line->scrape.fd(), line->scrape.events(), 0});
    waiting.push_back(line.get());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (::poll(polled.data(), static_cast<nfds_t>(polled.size()), static_cast<int>(std::max<std::int64_t>(0, left))) <=
      0) {
    return;
  }
  std::array<char, 64> rings{};
  while (polled[0].revents != 0 && ::read(bell[0], rings.data(), rings.size()) > 0) {}
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i]->scrape.turn(polled[i + 1].revents);
}

void MetricsPoller::Impl::finish(Line& line) {
  const bool came = line.scrape.state() == Scraping::done;
  const Nanos took = nanos_of(Clock::now() - line.scrape.began());
  const Nanos at = now();
  Applied outcome;
  if (came) outcome = apply(line, at, took);
  else outcome.error = line.scrape.fault();
  const std::size_t bytes = came ? line.scrape.page().size() : 0;
  line.scrape.rest();
  record(line, outcome, at, took, bytes);
  schedule(line, outcome.error.empty());
}

MetricsPoller::Impl::Applied MetricsPoller::Impl::apply(Line& line, Nanos at, Nanos took) {
  Applied outcome;
  const std::lock_guard lock(applying);
  if (line.removed.load()) return outcome;
  if (options.page != nullptr) options.page(options.page_user, {line.target.name, line.scrape.page(), at, took});
  if (router != nullptr && !line.target.replicas.empty() && !line.removed.load()) read_page(line, at, outcome);
  return outcome;
}

void MetricsPoller::Impl::read_page(Line& line, Nanos at, Applied& outcome) {
  const auto reading = parser.parse(line.scrape.page(), line.target.engine);
  outcome.skipped_lines = parser.skipped_lines();
  if (!reading) {
    outcome.error = reading.error().message;
    return;
  }
  outcome.engine = reading->engine;
  for (const EngineDelta& delta : line.counters.update(*reading)) outcome.restarted |= delta.restarted;
  std::vector<RankReplica> replicas;
  for (const PolledReplica& r : line.target.replicas) {
    replicas.push_back({r.id, r.dp_rank, r.model});
    if (outcome.restarted && line.target.clear_on_restart) (void)router->clear_cache(r.id, at);
  }
  const AppliedReading applied = apply_engine_reading(*router, *reading, replicas, at);
  outcome.signals = applied.signals;
  outcome.unmatched_ranks = applied.unmatched_ranks;
}

void MetricsPoller::Impl::record(Line& line, const Applied& outcome, Nanos at, Nanos took, std::size_t bytes) {
  const bool good = outcome.error.empty();
  const std::uint64_t before = std::exchange(line.failures_in_row, good ? 0 : line.failures_in_row + 1);
  {
    const std::lock_guard lock(shared);
    MetricsTargetStatus& s = line.status;
    ++s.scrapes;
    s.up = good;
    s.failures += good ? 0 : 1;
    s.failures_in_row = line.failures_in_row;
    s.connects = line.scrape.connects();
    s.last_duration = took;
    if (bytes != 0) {
      s.last_bytes = bytes;
      s.skipped_lines = outcome.skipped_lines;
    }
    if (good) {
      line.ever = true;
      line.last_success = at;
      s.unmatched_ranks = outcome.unmatched_ranks;
      s.signals += outcome.signals;
      s.restarts += outcome.restarted ? 1 : 0;
      if (!outcome.engine.empty()) s.engine = outcome.engine;
    } else {
      s.last_error = outcome.error;
    }
  }
  if (!good && before == 0) say(LogLevel::warning, line, outcome.error);
  if (good && before != 0) say(LogLevel::info, line, "answers again, after failures: " + std::to_string(before));
  if (outcome.restarted) say(LogLevel::info, line, "its counters fell: the engine began anew");
}

// From one beginning to the next, so that a slow server is not asked less often; after failures from their end.
void MetricsPoller::Impl::schedule(Line& line, bool good) {
  auto pause = duration_of(options.interval);
  const auto most = std::max(pause, duration_of(options.backoff_to));
  for (std::uint64_t i = 0; i < line.failures_in_row && pause < most; ++i) pause = std::min(pause * 2, most);
  const auto off = pause / 100 * options.jitter_percent;
  pause = drawn(pause - off, pause + off);
  const auto turn = Clock::now();
  line.due = good ? std::max(turn, line.scrape.began() + pause) : turn + pause;
}

Clock::duration MetricsPoller::Impl::drawn(Clock::duration low, Clock::duration high) {
  const auto width = static_cast<std::uint64_t>((high - low).count()) + 1;
  return low + Clock::duration(static_cast<Clock::duration::rep>(random.next() % width));
}

// ---------------------------------------------------------------- the interface

MetricsPoller::MetricsPoller(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsPoller::~MetricsPoller() = default;
MetricsPoller::MetricsPoller(MetricsPoller&&) noexcept = default;
MetricsPoller& MetricsPoller::operator=(MetricsPoller&&) noexcept = default;

Result<MetricsPoller> MetricsPoller::start(Router& router, MetricsPollerOptions options) {
  auto impl = std::make_unique<Impl>(&router, std::move(options));
  if (const Status begun = impl->begin(); !begun) return begun.error();
  return MetricsPoller(std::move(impl));
}

Result<MetricsPoller> MetricsPoller::start(MetricsPollerOptions options) {
  auto impl = std::make_unique<Impl>(nullptr, std::move(options));
  if (const Status begun = impl->begin(); !begun) return begun.error();
  return MetricsPoller(std::move(impl));
}

Status MetricsPoller::add(const MetricsTarget& target) { return impl_->add(target); }
Status MetricsPoller::remove(std::string_view name) { return impl_->remove(name); }

Result<MetricsTargetStatus> MetricsPoller::status(std::string_view name) const {
  const Nanos at = impl_->now();
  const std::lock_guard lock(impl_->shared);
  for (const auto& line : impl_->lines) {
    if (line->target.name == name) return impl_->status_of(*line, at);
  }
  return Error{Code::not_found, "no such target is polled", kNoOffset};
}

std::vector<MetricsTargetStatus> MetricsPoller::statuses() const {
  const Nanos at = impl_->now();
  std::vector<MetricsTargetStatus> out;
  const std::lock_guard lock(impl_->shared);
  for (const auto& line : impl_->lines) out.push_back(impl_->status_of(*line, at));
  return out;
}

}  // namespace warmroute
