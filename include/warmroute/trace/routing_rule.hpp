/// A way to choose a replica, as the simulator asks it: the published rules to compare with, each a small class, and
/// the real warmroute::Router under the virtual clock.
///
/// Invariant: the same calls give the same choices; exact ties fall by the generator that is passed in, one draw per
/// extra candidate. Does not: see more than its view gives (simulator.hpp), or change the fleet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/route/peer_load.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/trace/replica_model.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::trace {

/// What a rule sees of one replica that may take the request.
struct ReplicaSight {
  std::uint32_t replica = 0;
  std::int64_t matched_tokens = 0;    ///< m: of this request's prompt, never its last token
  std::int64_t requests = 0;          ///< q: queued and running
  std::int64_t waiting = 0;           ///< W: queued, or, by own tickets, without a first token
  std::int64_t pending_tokens = 0;    ///< prompt tokens still to be computed
  std::int64_t pending_ps = 0;        ///< the same as time
  std::int64_t tokens_in_flight = 0;  ///< input, and output so far where that is seen
  std::int64_t used_blocks = 0;       ///< held by requests
  std::int64_t cached_blocks = 0;     ///< held at all
};

struct RoutedRequest {
  std::uint32_t index = 0;
  std::uint32_t conversation = 0;  ///< kNoConversation: none
  std::int64_t input_tokens = 0;
  std::span<const std::uint64_t> blocks;
  std::int64_t now_us = 0;
};

/// What no router can know: for bounds from above.
class Foresight {
 public:
  virtual ~Foresight() = default;
  /// Fills `out` with the next scheduled arrivals, at most so many; `now_us` is when each arrives. In closed loops only
  /// first turns are scheduled.
  virtual void upcoming(std::size_t most, std::vector<RoutedRequest>& out) const = 0;
  /// Tokens of a prompt that each replica holds at this moment. shape: by replica, RuleSetting::max_replicas.
  virtual void held(const RoutedRequest& request, std::span<std::int64_t> tokens) const = 0;
};

/// What is the same for the whole run.
struct RuleSetting {
  HardwareProfile hardware;
  std::int64_t block_tokens = 512;
  std::int64_t capacity_blocks = 0;        ///< of each replica,
  std::vector<std::int64_t> capacities{};  ///< or where they differ, of each by number
  std::int64_t step_token_budget = 8192;
  std::uint32_t max_replicas = 0;  ///< that ever join
  std::uint64_t distinct_blocks = 0;
  std::uint64_t salt = 0;                ///< of block hashes
  std::int64_t routers = 1;              ///< that route side by side
  std::uint64_t seed = 1;                ///< of whatever a rule draws by itself
  bool engine_events = false;            ///< blocks_stored and blocks_removed will come
  bool engine_loads = false;             ///< loads will come
  const Foresight* foresight = nullptr;  ///< lifetime: the run's
  std::uint32_t prefill_replicas = 0;    ///< the first so many only prefill,
  std::uint32_t decode_replicas = 0;     ///< the next so many take what those prefilled; the rest are unified
  std::int64_t transfer_token_ps = 0;
  std::int64_t transfer_latency_us = 0;
  std::int64_t limit_ttft_us = 0;  ///< objectives; 0: none
  std::int64_t limit_itl_us = 0;

  [[nodiscard]] std::int64_t blocks_of(std::uint32_t replica) const noexcept {
    return replica < capacities.size() ? capacities[replica] : capacity_blocks;
  }
};

/// What an engine says of itself.
struct EngineLoad {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  double kv_usage = 0;
  std::optional<std::int64_t> waiting_tokens{};  ///< prompt tokens still to compute, where engines tell them
};

class RoutingRule {
 public:
  virtual ~RoutingRule() = default;

  /// Whether `choose` reads its sights; one that keeps its own books is given replica numbers alone.
  [[nodiscard]] virtual bool reads_sights() const noexcept { return true; }
  /// shape: `sights` in order of replica, never empty. The request is on its way to the answer from now on.
  /// returns: an index into `sights`.
  virtual std::size_t choose(const RoutedRequest& request, std::span<const ReplicaSight> sights, SplitMix64& ties) = 0;

  static constexpr std::size_t kNobody = ~std::size_t{0};
  /// Whether it knows replicas that only prefill, or only decode; others are refused fleets with such.
  [[nodiscard]] virtual bool knows_pools() const noexcept { return false; }
  /// returns: where the prompt of the request just chosen for is computed, an index into the same sights; kNobody:
  /// where it is decoded.
  [[nodiscard]] virtual std::size_t chosen_prefill() const noexcept { return kNobody; }

  // What becomes of the request; each at most once, `finished` or `lost` last.
  virtual void first_token(const RoutedRequest& /*request*/, std::uint32_t /*replica*/) {}
  /// Of one with a prefill replica of its own, for which `first_token` says that its prompt is computed: the other one
  /// has answered with a token, so it has the KV.
  virtual void transferred(const RoutedRequest& /*request*/, std::uint32_t /*replica*/) {}
  virtual void finished(const RoutedRequest& /*request*/, std::uint32_t /*replica*/, std::int64_t /*cached_tokens*/,
                        std::int64_t /*output_tokens*/) {}
  /// Its replica died, or could never hold it.
  virtual void lost(const RoutedRequest& /*request*/, std::uint32_t /*replica*/) {}

  // What engines say, as late as the view has it.
  virtual void block_stored(std::uint32_t /*replica*/, std::uint64_t /*block*/, std::uint64_t /*parent*/,
                            std::int64_t /*depth*/, std::int64_t /*now_us*/) {}
  virtual void block_removed(std::uint32_t /*replica*/, std::uint64_t /*block*/, std::int64_t /*now_us*/) {}
  virtual void load_seen(std::uint32_t /*replica*/, const EngineLoad& /*load*/, std::int64_t /*now_us*/) {}

  // What routers tell one another of what they have in flight; rules without books have nothing to tell.
  virtual void loads(std::vector<PeerLoad>& out, std::int64_t /*now_us*/) const { out.clear(); }
  /// Another router has sent this request there.
  virtual void peer_placed(const RoutedRequest& /*request*/, std::uint32_t /*replica*/) {}
  virtual void peer_loads(std::uint32_t /*router*/, std::span<const PeerLoad> /*loads*/, std::int64_t /*now_us*/) {}

  // Who is in the fleet. A replica that restarted has left and joined.
  virtual void joined(std::uint32_t /*replica*/, std::int64_t /*now_us*/) {}
  virtual void left(std::uint32_t /*replica*/, std::int64_t /*now_us*/) {}
  /// false: takes nothing new for a while; its cache stays.
  virtual void available(std::uint32_t /*replica*/, bool /*yes*/, std::int64_t /*now_us*/) {}

  /// returns: requests that it believes in flight; 0 for rules without books. For tests.
  [[nodiscard]] virtual std::int64_t booked() const { return 0; }
};

/// Makes a rule of one's own, one per router.
using RuleFactory = std::function<std::unique_ptr<RoutingRule>(const RuleSetting&)>;

/// A rule by name and options, as in "chwbl:c=1.25:k=2". Every name of routing_rule_names(); options beside it.
struct RuleSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
};
/// errors: invalid_argument (empty name, an option without a value).
[[nodiscard]] Result<RuleSpec> parse_rule(std::string_view text);
[[nodiscard]] std::span<const std::string_view> routing_rule_names() noexcept;
/// `policy` is what the rule "warmroute" starts from; its options (members of the policy's JSON form) come on top.
/// errors: invalid_argument: unknown rule or option, value that is no number or out of range.
[[nodiscard]] Result<std::unique_ptr<RoutingRule>> make_rule(const RuleSpec& spec, const RuleSetting& setting,
                                                             const Policy& policy = {});

}  // namespace warmroute::trace
