#include <utility>

#include "absl/container/flat_hash_map.h"
#include "route/cache_body.hpp"
#include "trace/decision_log/codec.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute::trace {
namespace {

/// One log on one router.
class Replayer {
 public:
  Replayer(const RouterOptions& sizes, const DecisionReplayOptions& options) : options_(options), router_(sizes) {}

  Status begin() {
    if (options_.change.empty()) return {};
    auto policy = policy_from_json(options_.change, router_.policy());
    if (!policy) return policy.error();
    return router_.set_policy(*policy);
  }

  /// errors: malformed.
  Status play(const DecisionRecord& r) {
    ++result.records;
    switch (r.call) {
      case DecisionCall::route: route(r); return {};
      case DecisionCall::first_token: compare(r, router_.first_token(ticket(r.ticket), r.now) == r.done); return {};
      case DecisionCall::transfer_done: compare(r, router_.transfer_done(ticket(r.ticket), r.now) == r.done); return {};
      case DecisionCall::finish: compare(r, router_.finish(taken(r.ticket), r.usage, r.now) == r.done); return {};
      case DecisionCall::fail: compare(r, router_.fail(taken(r.ticket), r.outcome, r.now) == r.done); return {};
      case DecisionCall::advance: router_.advance(r.now); return {};
      case DecisionCall::peer_loads: return peer_loads(r);
      case DecisionCall::peer_placed:
        compare(r, router_.peer_placed(r.replica, asked(r), r.now).code() == r.code);
        return {};
      case DecisionCall::set_policy: return set_policy(r);
      case DecisionCall::restore_cached: return restore(r);
      case DecisionCall::restore_learned: return restore_learned(r);
      case DecisionCall::blocks_stored:
      case DecisionCall::blocks_removed:
      case DecisionCall::blocks_also_on:
      case DecisionCall::clear_shared_store: events(r); return {};
      default: members(r); return {};
    }
  }

  DecisionReplay result;

 private:
  // lifetime: the record's.
  static Request asked(const DecisionRecord& r) {
    const LoggedRequest& from = r.request;
    Request request;
    request.model = from.model;
    request.adapter = from.adapter;
    request.session = from.session;
    request.tenant = from.tenant;
    request.blocks = r.blocks;
    request.block_kind = from.block_kind;
    request.input_tokens = from.input_tokens;
    request.prompt_bytes = from.prompt_bytes;
    request.max_output_tokens = from.max_output_tokens;
    request.class_id = from.class_id;
    request.priority = from.priority;
    request.deadline = from.deadline;
    request.stream = from.stream;
    request.exact_pool = from.exact_pool;
    request.excluded = from.excluded;
    request.pinned = from.pinned;
    return request;
  }

  Status peer_loads(const DecisionRecord& r) {
    const auto loads = read_peer_loads(r.text);
    if (!loads) return Error{Code::malformed, "decision log: " + loads.error().message, kNoOffset};
    compare(r, router_.peer_loads(static_cast<std::uint32_t>(r.count), *loads, r.now).code() == r.code);
    return {};
  }

  void route(const DecisionRecord& r) {
    const Decision d = router_.route(asked(r), r.now);
    ++result.decisions;
    if (r.decision.ticket != d.ticket && r.decision.ticket != kNoTicket) tickets_[r.decision.ticket] = d.ticket;
    if (same_decision(r.decision, d)) return;
    ++result.differing;
    const DecisionDifference here{r.number, r.call, r.now, r.decision, d};
    if (!result.first_difference) result.first_difference = here;
    if (r.decision.verdict == d.verdict && r.decision.replica == d.replica) return;
    ++result.other_choices;
    if (!result.first_other_choice) result.first_other_choice = here;
  }

  // A choice that differs may have given another ticket.
  Ticket ticket(Ticket recorded) const {
    const auto it = tickets_.find(recorded);
    return it == tickets_.end() ? recorded : it->second;
  }
  Ticket taken(Ticket recorded) {
    const Ticket out = ticket(recorded);
    tickets_.erase(recorded);
    return out;
  }

  void compare(const DecisionRecord& r, bool same) {
    if (same) return;
    ++result.other_results;
    if (!result.first_difference) result.first_difference = DecisionDifference{r.number, r.call, r.now, {}, {}};
  }

  Status set_policy(const DecisionRecord& r) {
    auto policy = policy_from_json(r.text);
    if (r.code == Code::ok && !policy)
      return Error{Code::malformed, "record " + std::to_string(r.number) + ": " + policy.error().message, kNoOffset};
    if (!policy) return {};  // it was refused then
    if (!options_.change.empty()) {
      policy = policy_from_json(options_.change, *policy);
      if (!policy) return policy.error();
    }
    compare(r, router_.set_policy(*policy).code() == r.code);
    return {};
  }

  Status restore(const DecisionRecord& r) {
    const auto body = read_cache_body(r.text);
    if (!body || body->replicas.size() != 1)
      return Error{Code::malformed, "record " + std::to_string(r.number) + ": a cache that cannot be read", kNoOffset};
    const auto restored = router_.restore_cached(r.replica, body->replicas.front().cache, r.now, r.away);
    compare(r, restored.code() == r.code && (restored ? restored->added : 0) == r.count);
    return {};
  }

  Status restore_learned(const DecisionRecord& r) {
    const auto body = read_cache_body(r.text);
    if (!body || body->learned.size() != 1)
      return Error{Code::malformed, "record " + std::to_string(r.number) + ": rates that cannot be read", kNoOffset};
    const auto restored = router_.restore_learned(body->learned.front().pool, body->learned.front().learned);
    compare(r, restored.code() == r.code && (restored ? restored->kinds + restored->replicas : 0) == r.count);
    return {};
  }

  void events(const DecisionRecord& r) {
    if (r.call == DecisionCall::clear_shared_store)
      return compare(r, router_.clear_shared_store(r.text).code() == r.code);
    if (r.call == DecisionCall::blocks_stored) {
      StoredBlocks stored;
      stored.tier = r.tier;
      stored.parent = r.parent;
      stored.ids = r.ids;
      stored.blocks = r.blocks;
      return compare(r, router_.blocks_stored(r.replica, stored, r.now).code() == r.code);
    }
    const auto known = r.call == DecisionCall::blocks_removed ? router_.blocks_removed(r.replica, r.tier, r.ids, r.now)
                                                              : router_.blocks_also_on(r.replica, r.tier, r.ids, r.now);
    compare(r, known.code() == r.code && (known ? *known : 0) == r.count);
  }

  void members(const DecisionRecord& r) {
    Code code = Code::ok;
    switch (r.call) {
      case DecisionCall::add_replica: {
        const auto id = router_.add_replica(r.spec, r.now);
        return compare(r, id.code() == r.code && (!id || *id == r.replica));
      }
      case DecisionCall::remove_replica: code = router_.remove_replica(r.replica, r.now).code(); break;
      case DecisionCall::set_health: code = router_.set_health(r.replica, r.health, "", r.now).code(); break;
      case DecisionCall::drain: code = router_.drain(r.replica, r.until, r.now).code(); break;
      case DecisionCall::update_replica: code = router_.update_replica(r.replica, r.spec, r.now).code(); break;
      case DecisionCall::clear_cache: code = router_.clear_cache(r.replica, r.now).code(); break;
      case DecisionCall::signal: code = router_.signal(r.replica, r.signal, r.value, r.now).code(); break;
      default: code = router_.prefix_counters(r.replica, r.counters, r.now).code(); break;
    }
    compare(r, code == r.code);
  }

  const DecisionReplayOptions& options_;
  Router router_;
  absl::flat_hash_map<Ticket, Ticket> tickets_;  // recorded to replayed, where they differ
};

}  // namespace

Result<DecisionReplay> replay_decisions(DecisionLogReader& log, const DecisionReplayOptions& options) {
  Replayer replayer(log.router_options(), options);
  if (auto begun = replayer.begin(); !begun) return begun.error();
  DecisionRecord record;
  while (options.max_records == 0 || replayer.result.records < options.max_records) {
    auto more = log.next(record);
    if (!more) return more.error();
    if (!*more) break;
    if (auto played = replayer.play(record); !played) return played.error();
  }
  replayer.result.torn_bytes = log.torn_bytes();
  return replayer.result;
}

}  // namespace warmroute::trace
