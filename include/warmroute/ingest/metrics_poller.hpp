/// Asks model servers for their metrics (GET /metrics, HTTP/1.1, unencrypted) again and again, on one thread of its own, and gives a router
/// what they say of themselves (ingest/engine_metrics.hpp), or hands each page to a callback, or both. Plain sockets; in the library.
/// Invariant: routing never waits for it; one slow, broken or hostile target delays no other one's pages. A failed scrape changes no signal:
/// it grows old, which the policy's `signals_max_age` judges.
/// Does not: speak TLS, follow redirects, send credentials, take a replica down. A host's name is looked up on the same thread, and blocks it
/// as long as the system's resolver does: give addresses where that may take seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/observe/log.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {

/// Whose signals a rank of a target's page is; as RankReplica.
struct PolledReplica {
  ReplicaId id;
  std::optional<std::uint32_t> dp_rank{};  ///< nullopt: the only rank of the page, whatever its label
  std::string model{};                     ///< empty: any
};

/// One page, and the replicas that it tells of: one server's data-parallel ranks are one target, its two pages are two (SGLang's /metrics, and
/// /v1/loads?include=core&format=prometheus for the prompt tokens that wait).
struct MetricsTarget {
  std::string
      url;  ///< "[http://]host[:port][/path]"; an IPv6 address in brackets; without port 80, without path /metrics
  std::string name{};  ///< what it is called in calls and logs; empty: the url
  std::string
      engine{};  ///< the table to read it by ("vllm", "sglang", ...); empty: the one whose metrics are on the page
  std::vector<PolledReplica> replicas{};  ///< empty: nothing is applied, the callback alone gets the pages
  /// When the page's counters fall, the engine began anew: what is believed of its replicas' caches goes (Router::clear_cache). Not where KV
  /// events come, too: they say what the new process holds, and may have said it already.
  bool clear_on_restart = true;
};

/// A page that came whole with status 200. lifetime of views: until the callback returns.
struct MetricsPage {
  std::string_view target;  ///< its name
  std::string_view body;
  Nanos at;    ///< when it was there
  Nanos took;  ///< from the request on
};

struct MetricsPollerOptions {
  Nanos interval = milliseconds(500);  ///< from one scrape of a target to its next; several gateways want 100 ms
  std::uint32_t jitter_percent =
      10;  ///< each pause is drawn from the interval and so much around it, so that targets are not asked at once
  Nanos timeout = seconds(2);  ///< of one scrape: connection, request and the whole answer
  Nanos backoff_to =
      seconds(5);  ///< failures in a row double the pause, up to this (or the interval, if that is longer)
  std::size_t max_bytes = std::size_t{16} << 20;  ///< longer answers fail
  bool keep_alive = true;                         ///< one connection per target stays open
  std::uint64_t seed = 1;                         ///< of the jitter
  std::vector<EngineMetricsTable> tables{};       ///< beside the built-in ones, or instead of those of the same engine
  /// Called on the poller's thread, before the page is applied; slow callbacks delay scrapes. It may call `add`, `remove` and `status`.
  void (*page)(void* user, const MetricsPage& page) = nullptr;
  void* page_user = nullptr;  ///< lifetime: as long as the poller
  /// The router's clock. lifetime: `clock_user` as long as the poller. Without one: the system's monotonic clock.
  Nanos (*clock)(void* user) = nullptr;
  void* clock_user = nullptr;
  LogSink log{};  ///< a target's first failure in a row, and that it answers again; called on the poller's thread
};

struct MetricsTargetStatus {
  std::string name, url;
  std::string engine;          ///< of the last page that was read; empty: none yet
  bool up = false;             ///< the last scrape succeeded
  std::uint64_t scrapes = 0;   ///< ended, in either way
  std::uint64_t failures = 0;  ///< of those
  std::uint64_t failures_in_row = 0;
  std::uint64_t connects = 0;       ///< connections that were made
  std::uint64_t restarts = 0;       ///< counters fell
  std::string last_error;           ///< of the last failure; stays after a success
  std::optional<Nanos> age;         ///< since the last success; nullopt: never
  Nanos last_duration{0};           ///< of the last scrape, in either way
  std::size_t last_bytes = 0;       ///< of the last page
  std::size_t skipped_lines = 0;    ///< of the last page
  std::size_t unmatched_ranks = 0;  ///< of the last page: with no replica, or several
  std::uint64_t signals = 0;        ///< given to the router
};

/// threads: any for every call. lifetime: `router` must outlive it; its end stops the thread, in the middle of scrapes.
class MetricsPoller {
 public:
  /// errors: invalid_argument (options, tables; every fault named), io (no thread, no descriptors).
  static Result<MetricsPoller> start(Router& router, MetricsPollerOptions options = {});
  /// Without a router: pages go to the callback alone.
  static Result<MetricsPoller> start(MetricsPollerOptions options);
  ~MetricsPoller();
  MetricsPoller(MetricsPoller&&) noexcept;
  MetricsPoller& operator=(MetricsPoller&&) noexcept;

  /// The first scrape comes within the interval, and within a second. errors: invalid_argument (url), already_exists (name).
  Status add(const MetricsTarget& target);
  /// Nothing of that target is applied or called back once this returns (unless called from the callback: after that). errors: not_found.
  Status remove(std::string_view name);
  /// errors: not_found.
  [[nodiscard]] Result<MetricsTargetStatus> status(std::string_view name) const;
  [[nodiscard]] std::vector<MetricsTargetStatus> statuses() const;  ///< in the order of `add`

 private:
  struct Impl;
  explicit MetricsPoller(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
