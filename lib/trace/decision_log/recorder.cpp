#include "warmroute/trace/decision_recorder.hpp"

#include <openssl/rand.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "route/cache_body.hpp"
#include "trace/decision_log/keyed.hpp"
#include "trace/decision_log/log_file.hpp"
#include "trace/decision_log/recorder_calls.hpp"
#include "warmroute/detail/xxh3.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute::trace {
namespace {

std::string hex_of(char kind, std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%c%016llx", kind, static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

struct DecisionRecorder::State {
  State(std::FILE* file, const RouterOptions& router_options, const DecisionLogOptions& options, const SipKey& key,
        std::uint64_t log_number)
      : log(file, options, log_number),
        router(router_options),
        max_path_blocks(router_options.max_path_blocks),
        block_key(key.derive("block")),
        name_key(key.derive("engine")),
        session_key_(key.derive("session")),
        tenant_key(key.derive("tenant")),
        seed_key(key.derive("seed")) {
    log.begin(router_options);
  }

  [[nodiscard]] EngineHash keyed(EngineHash name) const noexcept {
    const std::uint64_t value = name_key.of(static_cast<std::uint64_t>(name));
    return EngineHash{name == EngineHash{0} ? 0 : std::max<std::uint64_t>(1, value)};  // 0 names nothing
  }
  void key_names(std::span<const EngineHash> names) {
    record.ids.clear();
    for (const EngineHash name : names) record.ids.push_back(keyed(name));
  }
  void key_blocks(std::span<const BlockHash> blocks) {
    for (const BlockHash block : blocks) record.blocks.push_back(BlockHash{block_key.of(to_u64(block))});
  }
  void key_tokens(std::span<const std::uint32_t> ids, const HashSpace& space, std::size_t most) {
    hashes.resize(std::min(ids.size() / policy.block_size, most));
    hash_token_blocks(ids, policy.block_size, block_seed(space), hashes);
    key_blocks(hashes);
  }
  // The request as the router inside is to see it: views into `record`.
  Request keyed(const Request& r) {
    LoggedRequest& to = record.request;
    to.model = r.model;
    to.adapter = r.adapter;
    to.session = r.session.empty() ? std::string{} : hex_of('s', session_key_.of(r.session));
    to.tenant = r.tenant;
    if (!r.tenant.empty() && policy.isolation != Isolation::pool) to.tenant = hex_of('t', tenant_key.of(r.tenant));
    to.block_kind = r.block_kind;
    to.input_tokens = r.input_tokens;
    to.prompt_bytes = r.prompt_bytes;
    to.max_output_tokens = r.max_output_tokens;
    to.class_id = r.class_id;
    to.priority = r.priority;
    to.deadline = r.deadline;
    to.stream = r.stream;
    to.exact_pool = r.exact_pool;
    to.excluded.assign(r.excluded.begin(), r.excluded.end());
    to.pinned = r.pinned;
    record.blocks.clear();
    if (!r.blocks.empty() || r.token_ids.empty()) {
      key_blocks(r.blocks.first(std::min(r.blocks.size(), max_path_blocks)));
    } else {
      key_tokens(r.token_ids, {policy.hash_seed, r.adapter, r.cache_salt, isolation_key(policy.isolation, r.tenant)},
                 max_path_blocks);
      to.block_kind = BlockKind::tokens;
      if (to.input_tokens <= 0) to.input_tokens = static_cast<std::int64_t>(r.token_ids.size());
    }
    return request_of(record);
  }
  static Request request_of(const DecisionRecord& record);

  void start(DecisionCall call, Nanos now, ReplicaId id = kNoReplica) {
    record.call = call;
    record.now = now;
    record.replica = id;
    record.code = Code::ok;
  }
  template <class Outcome>
  Outcome finish(Outcome outcome) {
    record.code = outcome.code();
    log.write(record);
    return outcome;
  }

  mutable std::mutex mutex;
  decisions::LogFile log;
  Router router;
  Policy policy;  // as the caller gave it
  std::size_t max_path_blocks;
  SipKey block_key, name_key, session_key_, tenant_key, seed_key;
  DecisionRecord record;
  std::vector<BlockHash> hashes;
  std::unique_ptr<RouterCalls> behind;
};

Request DecisionRecorder::State::request_of(const DecisionRecord& record) {
  const LoggedRequest& from = record.request;
  Request r;
  r.model = from.model;
  r.adapter = from.adapter;
  r.session = from.session;
  r.tenant = from.tenant;
  r.blocks = record.blocks;
  r.block_kind = from.block_kind;
  r.input_tokens = from.input_tokens;
  r.prompt_bytes = from.prompt_bytes;
  r.max_output_tokens = from.max_output_tokens;
  r.class_id = from.class_id;
  r.priority = from.priority;
  r.deadline = from.deadline;
  r.stream = from.stream;
  r.exact_pool = from.exact_pool;
  r.excluded = from.excluded;
  r.pinned = from.pinned;
  return r;
}

DecisionRecorder::DecisionRecorder(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
DecisionRecorder::DecisionRecorder(DecisionRecorder&&) noexcept = default;
DecisionRecorder& DecisionRecorder::operator=(DecisionRecorder&&) noexcept = default;
DecisionRecorder::~DecisionRecorder() = default;

Result<DecisionRecorder> DecisionRecorder::open(const std::string& path, const RouterOptions& router,
                                                const DecisionLogOptions& options) {
  DecisionLogKey key{};
  std::uint64_t number = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) != 1 ||
      (!options.key && RAND_bytes(key.data(), static_cast<int>(key.size())) != 1))
    return Error{Code::internal, "no random bytes for the log's key", kNoOffset};
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  DecisionLogOptions own = options;
  own.key.reset();  // a copy less
  DecisionRecorder recorder{std::make_shared<State>(file, router, own, SipKey(options.key.value_or(key)), number)};
  // Owned by the state, so it must not own the state.
  recorder.state_->behind =
      decisions::calls_of(DecisionRecorder{std::shared_ptr<State>(std::shared_ptr<State>{}, recorder.state_.get())});
  if (auto begun = recorder.flush(); !begun) return begun.error();
  return recorder;
}

Status DecisionRecorder::set_policy(const Policy& policy) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  Policy inside = policy;
  inside.hash_seed = s.seed_key.of(policy.hash_seed);
  s.start(DecisionCall::set_policy, s.log.before());
  s.record.text = policy_to_json(inside);
  s.record.policy_digest = XXH3_64bits(s.record.text.data(), s.record.text.size());
  auto set = s.router.set_policy(inside);
  if (set) s.policy = policy;
  return s.finish(std::move(set));
}

Policy DecisionRecorder::policy() const {
  const std::lock_guard lock(state_->mutex);
  return state_->policy;
}

Result<ReplicaId> DecisionRecorder::add_replica(ReplicaSpec spec, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::add_replica, now);
  s.record.spec = spec;
  auto id = s.router.add_replica(std::move(spec), now);
  if (id) s.record.replica = *id;
  return s.finish(std::move(id));
}

Status DecisionRecorder::remove_replica(ReplicaId id, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::remove_replica, now, id);
  return s.finish(s.router.remove_replica(id, now));
}

Status DecisionRecorder::set_health(ReplicaId id, Health health, std::string_view reason, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::set_health, now, id);
  s.record.health = health;
  return s.finish(s.router.set_health(id, health, reason, now));
}

Status DecisionRecorder::drain(ReplicaId id, Nanos until, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::drain, now, id);
  s.record.until = until;
  return s.finish(s.router.drain(id, until, now));
}

Status DecisionRecorder::update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::update_replica, now, id);
  s.record.spec = spec;
  return s.finish(s.router.update_replica(id, spec, now));
}

Status DecisionRecorder::clear_cache(ReplicaId id, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::clear_cache, now, id);
  return s.finish(s.router.clear_cache(id, now));
}

Status DecisionRecorder::signal(ReplicaId id, Signal kind, double value, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::signal, now, id);
  s.record.signal = kind;
  s.record.value = value;
  return s.finish(s.router.signal(id, kind, value, now));
}

Status DecisionRecorder::prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::prefix_counters, now, id);
  s.record.counters = counters;
  return s.finish(s.router.prefix_counters(id, counters, now));
}

Status DecisionRecorder::blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::blocks_stored, now, id);
  s.record.tier = stored.tier;
  s.record.parent.reset();
  if (stored.parent) s.record.parent = s.keyed(*stored.parent);
  s.key_names(stored.ids);
  s.record.blocks.clear();
  if (!stored.blocks.empty()) {
    s.key_blocks(stored.blocks);
  } else if (stored.token_ids.size() % s.policy.block_size ==
             0) {  // else the router is to refuse it: ids without blocks
    const HashSpace space{s.policy.hash_seed, stored.adapter, stored.cache_salt,
                          isolation_key(s.policy.isolation, stored.tenant)};
    s.key_tokens(stored.token_ids, space, ~std::size_t{0});
  }
  StoredBlocks inside;
  inside.tier = stored.tier;
  inside.parent = s.record.parent;
  inside.ids = s.record.ids;
  inside.blocks = s.record.blocks;
  return s.finish(s.router.blocks_stored(id, inside, now));
}

Result<std::size_t> DecisionRecorder::blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids,
                                                     Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::blocks_removed, now, id);
  s.record.tier = tier;
  s.key_names(ids);
  auto removed = s.router.blocks_removed(id, tier, s.record.ids, now);
  s.record.count = removed ? *removed : 0;
  return s.finish(std::move(removed));
}

Result<std::size_t> DecisionRecorder::blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids,
                                                     Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::blocks_also_on, now, id);
  s.record.tier = tier;
  s.key_names(ids);
  auto known = s.router.blocks_also_on(id, tier, s.record.ids, now);
  s.record.count = known ? *known : 0;
  return s.finish(std::move(known));
}

Status DecisionRecorder::clear_shared_store(std::string_view pool) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::clear_shared_store, s.log.before());
  s.record.text = pool;
  return s.finish(s.router.clear_shared_store(pool));
}

Decision DecisionRecorder::route(const Request& request, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::route, now);
  s.record.decision = s.router.route(s.keyed(request), now);
  s.log.write(s.record);
  return s.record.decision;
}

void DecisionRecorder::route_batch(std::span<const Request> requests, std::span<Decision> decisions, Nanos now) {
  const std::size_t count = std::min(requests.size(), decisions.size());
  for (std::size_t i = 0; i < count; ++i) decisions[i] = route(requests[i], now);
}

Decision DecisionRecorder::peek(const Request& request, Nanos now) const {
  const std::lock_guard lock(state_->mutex);
  return state_->router.peek(state_->keyed(request), now);
}

Explanation DecisionRecorder::explain(const Request& request, Nanos now) const {
  const std::lock_guard lock(state_->mutex);
  return state_->router.explain(state_->keyed(request), now);
}

bool DecisionRecorder::first_token(Ticket ticket, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::first_token, now);
  s.record.ticket = ticket;
  s.record.done = s.router.first_token(ticket, now);
  s.log.write(s.record);
  return s.record.done;
}

bool DecisionRecorder::transfer_done(Ticket ticket, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::transfer_done, now);
  s.record.ticket = ticket;
  s.record.done = s.router.transfer_done(ticket, now);
  s.log.write(s.record);
  return s.record.done;
}

bool DecisionRecorder::finish(Ticket ticket, const UsageCounts& usage, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::finish, now);
  s.record.ticket = ticket;
  s.record.usage = usage;
  s.record.done = s.router.finish(ticket, usage, now);
  s.log.write(s.record);
  return s.record.done;
}

bool DecisionRecorder::fail(Ticket ticket, Outcome outcome, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::fail, now);
  s.record.ticket = ticket;
  s.record.outcome = outcome;
  s.record.done = s.router.fail(ticket, outcome, now);
  s.log.write(s.record);
  return s.record.done;
}

Result<std::size_t> DecisionRecorder::peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::peer_loads, now);
  s.record.count = peer;
  s.record.text.clear();
  append_peer_loads(loads, s.record.text);
  return s.finish(s.router.peer_loads(peer, loads, now));
}

Status DecisionRecorder::peer_placed(ReplicaId id, const Request& request, Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::peer_placed, now, id);
  return s.finish(s.router.peer_placed(id, s.keyed(request), now));
}

void DecisionRecorder::advance(Nanos now) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::advance, now);
  s.router.advance(now);
  s.log.write(s.record);
}

Result<RestoredCache> DecisionRecorder::restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now, Nanos away) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::restore_cached, now, id);
  s.record.away = away;
  s.record.text.clear();
  append_body_header(s.record.text, cache.block_size, cache.seed_digest, 1);
  append_replica_cache(s.record.text, "", "r", 0, cache);
  append_pool_count(s.record.text, 0);
  auto body = read_cache_body(s.record.text);  // what the log holds is what the router gets, to the last rounding
  if (!body) return body.error();
  auto restored = s.router.restore_cached(id, body->replicas.front().cache, now, away);
  s.record.count = restored ? restored->added : 0;
  return s.finish(std::move(restored));
}

Result<RestoredLearned> DecisionRecorder::restore_learned(std::string_view pool, const LearnedPool& learned) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.start(DecisionCall::restore_learned, s.log.before());
  s.record.text.clear();
  append_body_header(s.record.text, 0, 0, 0);
  append_pool_count(s.record.text, 1);
  append_learned(s.record.text, pool, learned);
  auto body = read_cache_body(s.record.text);
  if (!body) return body.error();
  auto restored = s.router.restore_learned(pool, body->learned.front().learned);
  s.record.count = restored ? restored->kinds + restored->replicas : 0;
  return s.finish(std::move(restored));
}

const Router& DecisionRecorder::router() const noexcept { return state_->router; }

RouterCalls& DecisionRecorder::calls() noexcept { return *state_->behind; }

DecisionLogStatistics DecisionRecorder::log_statistics() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log.statistics();
}

Status DecisionRecorder::flush() {
  const std::lock_guard lock(state_->mutex);
  return state_->log.flush();
}

}  // namespace warmroute::trace
