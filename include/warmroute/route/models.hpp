/// Which pool serves a model name: aliases with weighted targets and ordered fallbacks, pools that are somebody else's API with quotas and
/// prices, and classes of requests that may never leave for one. A ModelRouter puts this in front of a Router.
///
///   warmroute::ModelRouter models{router};
///   models.set_map({.models = {{.name = "chat", .targets = {{.pool = "70b"}}, .fallbacks = {{.pool = "api", .model = "gpt-x"}}}},
///                   .pools = {{.name = "api", .external = true, .requests_per_minute = 600}}});
///   auto d = models.route(request, now);              // d.decision, d.pool, d.model: what to ask that server for
///   models.finish(d.ticket, usage, now);              // instead of Router::finish: quotas get the truth
///
/// Invariants: a request goes to the pools its name lists and to no other, least of all to the Router's catch-all pool; a class that may
/// not leave never reaches an external pool, whatever is down, and is told so (`no_permitted_pool`); what a quota was charged
/// is settled exactly once, by finish, fail or nothing (a lease that ends keeps the estimate).
/// An external API is one replica in a pool of its own: the model of its cache is what is believed of the API's prompt cache, its books are
/// what this process has in flight there. threads: any; set_map is serialised and swapped atomically. alloc: route none, once warm.
/// Does not: translate bodies, hold credentials, know what a class means.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {

struct ModelTarget {
  std::string pool;          ///< of the Router, by exactly this name
  std::string model{};       ///< what that server calls it; empty: what the client asked for
  std::uint32_t weight = 1;  ///< share among the targets of a name; not used among fallbacks
};

/// How one of several targets is taken first. The others are tried after it, in their order.
enum class TargetChoice : std::uint8_t {
  weight =
      0,  ///< drawn by weight from the session, else from the prompt's first blocks: a conversation stays where it is
  cheapest = 1,  ///< least expected price, cached input at the cached price
};

struct ModelEntry {
  std::string name;  ///< as clients ask for it; "" stands for every name without an entry of its own
  std::vector<ModelTarget> targets{};
  /// Tried in this order when no target takes it. With Policy::route_when_all_down a pool that is down takes it: turn that off for these.
  std::vector<ModelTarget> fallbacks{};
  TargetChoice choice = TargetChoice::weight;
};

/// What is to be known of a pool beyond its replicas. A pool that is not listed is the operator's own and free of charge.
struct PoolTerms {
  std::string name;
  bool external = false;                 ///< requests leave the operator's own machines
  std::int64_t requests_per_minute = 0;  ///< 0: no limit. A minute's worth may come at once
  std::int64_t tokens_per_minute = 0;    ///< input and expected output; settled by the usage
  std::int64_t max_in_flight = 0;        ///< calls at the same moment may exceed it by one each
  std::int64_t input_price = 0;          ///< units: 1e-12 USD a token, i.e. USD per million tokens times 1e6
  std::int64_t cached_input_price = 0;
  std::int64_t output_price = 0;
};

/// What requests of a class may do. A class that is not listed may go anywhere.
struct ClassRule {
  std::uint32_t class_id = 0;
  bool may_leave = true;  ///< false: never to an external pool
};

struct ModelMap {
  std::vector<ModelEntry> models{};
  std::vector<PoolTerms> pools{};
  std::vector<ClassRule> classes{};
  /// A name without an entry is a pool's name, as it is for Router::route, but for the catch-all pool; false: verdict no_pool.
  bool unknown_names_are_pools = true;
  std::uint64_t seed = 0;  ///< of the draw by weight
};
inline constexpr std::size_t kMaxTargets = 16;  ///< of one name, fallbacks included

/// errors: invalid_argument; the message lists every fault at once.
Status validate(const ModelMap& map);

/// The handle of one request: the Router's ticket, and what quotas were charged.
struct ModelTicket {
  Ticket ticket = kNoTicket;
  std::uint32_t pool = 0;           ///< 1 + index of its quotas; 0: it has none
  std::int64_t charged_tokens = 0;  ///< of tokens_per_minute
};

struct ModelDecision {
  Decision decision;
  ModelTicket ticket;
  std::string_view pool{};   ///< that took it. lifetime: the ModelRouter's
  std::string_view model{};  ///< what to ask the server for; empty: the client's own name. lifetime: the ModelRouter's
  bool external = false;
  std::uint8_t target = 0;     ///< which of targets, then fallbacks, in the order of the entry
  std::uint8_t refused = 0;    ///< targets before it that could not take it: no replica, saturated, over a quota
  std::uint8_t forbidden = 0;  ///< targets that its class may not use

  [[nodiscard]] bool routed() const noexcept { return decision.routed(); }
};

/// What became of quotas; by pool, in the order of the map.
struct PoolTermsReading {
  std::string name;
  std::uint64_t routed = 0;
  std::uint64_t over_quota = 0;  ///< requests that another target took, or that were refused
  std::int64_t in_flight = 0;
  Nanos blocked_until{0};  ///< the API asked to be left alone until then
};

namespace detail {
struct ModelView;
struct PoolQuota;
}  // namespace detail

class ModelRouter {
 public:
  /// lifetime: the router's is longer.
  explicit ModelRouter(Router& router);
  ~ModelRouter();
  ModelRouter(const ModelRouter&) = delete;
  ModelRouter& operator=(const ModelRouter&) = delete;

  /// Quotas of pools that stay keep what they were charged. errors: those of validate; nothing changes then.
  Status set_map(const ModelMap& map);

  /// Hot. cost: the Router's, per target that is tried; with TargetChoice::cheapest a peek more per target.
  /// Verdicts beyond the Router's: no_permitted_pool (every target is forbidden to its class), saturated with retry_after (the rest is over
  /// its quota). Where targets fail for different reasons: saturated, which time heals, else the first one's.
  ModelDecision route(const Request& request, Nanos now);
  bool first_token(const ModelTicket& ticket, Nanos now);
  bool finish(const ModelTicket& ticket, const UsageCounts& usage, Nanos now);
  /// `retry_after`: as the server said with a 429 or 503; the pool is left alone for so long where it has terms.
  bool fail(const ModelTicket& ticket, Outcome outcome, Nanos now, Nanos retry_after = Nanos{0});

  [[nodiscard]] std::vector<PoolTermsReading> readings() const;

 private:
  struct Try;
  ModelDecision try_targets(const detail::ModelView& view, const Request& request, Try* order, std::size_t count,
                            Nanos now);
  std::string_view intern(const std::string& name);

  Router* router_;
  mutable detail::EpochDomain domain_;
  mutable std::mutex control_;
  std::vector<std::unique_ptr<const std::string>> names_;   // what decisions point to; never removed
  std::vector<std::unique_ptr<detail::PoolQuota>> quotas_;  // by number; never removed
  detail::Snapshot<detail::ModelView> view_;
  std::atomic<std::uint64_t> sequence_{0};
};

/// JSON form, as examples/gateway reads it: {"models": [{"name", "targets": [{"pool", "model", "weight"}], "fallbacks", "choice"}],
/// "pools": [{"name", "external", "requests_per_minute", ...}], "classes": [{"class_id", "may_leave"}], ...}. Needs warmroute::warmroute.
/// errors: invalid_argument, every fault with its path; unknown members are faults.
Result<ModelMap> model_map_from_json(std::string_view json);
/// returns: [{"pool", "routed", "over_quota", "in_flight", "blocked_until_ns"}].
std::string to_json(const std::vector<PoolTermsReading>& readings);

}  // namespace warmroute

#include "warmroute/route/detail/model_router.hpp"
