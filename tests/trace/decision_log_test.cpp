// A log of decisions: what is recorded replays the same, call by call; a knob shows where it parts; nothing leaves the process unkeyed.
#include "warmroute/trace/decision_log.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "support/scratch.hpp"
#include "trace/decision_log/keyed.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/models.hpp"
#include "warmroute/route/policy_json.hpp"
#include "warmroute/trace/decision_recorder.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace::decision_log_test {
namespace {

std::string log_path(const std::string& name) { return test::scratch_path(name + ".decisions"); }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

DecisionReplay replay(const std::string& path, const DecisionReplayOptions& options = {}) {
  auto log = DecisionLogReader::open(path);
  EXPECT_TRUE(log.ok()) << log.error().message;
  auto result = replay_decisions(*log, options);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : DecisionReplay{};
}

std::string places(const DecisionReplay& r) {
  if (!r.first_difference) return "none";
  std::string out = std::to_string(r.differing) + " + " + std::to_string(r.other_results) + ", first record " +
                    std::to_string(r.first_difference->record) + " ";
  return out.append(decision_call_name(r.first_difference->call));
}

// A member that is added to what a router is told or says must go into the log, too: it stops compiling here until the codec (append_content,
// read_content), the recorder, the replay and same_decision know it.
[[maybe_unused]] void every_member_is_known_to_the_log(const Request& r, const ReplicaSpec& s, const Decision& d) {
  [[maybe_unused]] const auto& [model, adapter, session, tenant, cache_salt, token_ids, blocks, block_kind,
                                input_tokens, prompt_bytes, max_output_tokens, class_id, priority, deadline, stream,
                                exact_pool, excluded, pinned] = r;
  [[maybe_unused]] const auto& [name, dp_rank, pool, ring_id, role, weight, any_adapter, adapters, labels, rates,
                                capacity_tokens, cache_kind, slots, slow_start, slow_start_weight, health,
                                health_reason, drain_until] = s;
  [[maybe_unused]] const auto& [verdict, reason, fallback_count, replica, prefill_replica, fallback_ids, ticket, input,
                                cached, best_cached, wait, prefill, retry_after, of_class, of_priority, split,
                                decode_cached, transfer] = d;
}

constexpr DecisionLogKey kKey{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST(SipKey, AgreesWithItsAuthorsVectors) {
  const SipKey key(kKey);
  std::string message;
  EXPECT_EQ(key.of(message), 0x726F'DB47'DD0E'0E31U);
  for (char i = 0; i < 8; ++i) message += i;
  EXPECT_EQ(key.of(message), 0x93F5'F579'9A93'2462U);
  EXPECT_EQ(key.of(std::uint64_t{0x0706'0504'0302'0100U}), 0x93F5'F579'9A93'2462U);
  for (char i = 8; i < 15; ++i) message += i;
  EXPECT_EQ(key.of(message), 0xA129'CA61'49BE'45E5U);
  EXPECT_NE(key.derive("block").of(std::uint64_t{1}), key.derive("engine").of(std::uint64_t{1}));
}

/// The real router under the simulator's clock, recorded: membership, health, events, loads, requests.
class RecordedRule final : public RoutingRule {
 public:
  RecordedRule(const RuleSetting& setting, const std::string& path, const Policy& policy) : setting_(setting) {
    DecisionLogOptions options;
    options.buffer_bytes = 4'096;
    recorder_ = std::make_unique<DecisionRecorder>(std::move(*DecisionRecorder::open(path, {}, options)));
    Policy own = policy;
    own.block_size = static_cast<std::uint32_t>(setting.block_tokens);
    EXPECT_TRUE(recorder_->set_policy(own).ok());
    ids_.resize(setting.max_replicas);
  }
  [[nodiscard]] bool reads_sights() const noexcept override { return false; }
  std::size_t choose(const RoutedRequest& request, std::span<const ReplicaSight> sights, SplitMix64&) override {
    hashes_.clear();
    for (const std::uint64_t block : request.blocks) hashes_.push_back(hash_of(block));
    const std::string session = request.conversation == kNoConversation ? "" : std::to_string(request.conversation);
    Request asked;
    asked.session = session;
    asked.blocks = hashes_;
    asked.input_tokens = request.input_tokens;
    asked.class_id = request.index % 3;
    const Decision d = recorder_->route(asked, at(request.now_us));
    if (request.index >= tickets_.size()) tickets_.resize(request.index + 1, kNoTicket);
    tickets_[request.index] = d.ticket;
    for (std::size_t i = 0; i < sights.size(); ++i) {
      if (d.routed() && ids_[sights[i].replica] == d.replica) return i;
    }
    return 0;
  }
  void first_token(const RoutedRequest& r, std::uint32_t) override {
    recorder_->first_token(tickets_[r.index], at(r.now_us));
  }
  void finished(const RoutedRequest& r, std::uint32_t, std::int64_t cached, std::int64_t output) override {
    recorder_->finish(tickets_[r.index], {r.input_tokens, cached, output}, at(r.now_us));
  }
  void lost(const RoutedRequest& r, std::uint32_t) override {
    recorder_->fail(tickets_[r.index], Outcome::replica_error, at(r.now_us));
  }
  void block_stored(std::uint32_t replica, std::uint64_t block, std::uint64_t parent, std::int64_t depth,
                    std::int64_t now_us) override {
    const EngineHash name{block + 1};
    const BlockHash hash = hash_of(block);
    StoredBlocks stored;
    if (depth > 0) stored.parent = EngineHash{parent + 1};
    stored.ids = {&name, 1};
    stored.blocks = {&hash, 1};
    static_cast<void>(recorder_->blocks_stored(ids_[replica], stored, at(now_us)));
  }
  void block_removed(std::uint32_t replica, std::uint64_t block, std::int64_t now_us) override {
    const EngineHash name{block + 1};
    static_cast<void>(recorder_->blocks_removed(ids_[replica], Tier::device, {&name, 1}, at(now_us)));
  }
  void load_seen(std::uint32_t replica, const EngineLoad& load, std::int64_t now_us) override {
    const auto tell = [&](Signal kind, double value) {
      static_cast<void>(recorder_->signal(ids_[replica], kind, value, at(now_us)));
    };
    tell(Signal::running, static_cast<double>(load.running));
    tell(Signal::waiting, static_cast<double>(load.waiting));
    tell(Signal::kv_usage, load.kv_usage);
    if (load.waiting_tokens) tell(Signal::waiting_tokens, static_cast<double>(*load.waiting_tokens));
  }
  void joined(std::uint32_t replica, std::int64_t now_us) override {
    ReplicaSpec spec;
    spec.name = "replica-" + std::to_string(replica);
    spec.capacity_tokens = setting_.capacity_blocks * setting_.block_tokens;
    const auto id = recorder_->add_replica(std::move(spec), at(now_us));
    ids_[replica] = id ? *id : kNoReplica;
  }
  void left(std::uint32_t replica, std::int64_t now_us) override {
    static_cast<void>(recorder_->remove_replica(ids_[replica], at(now_us)));
  }
  void available(std::uint32_t replica, bool yes, std::int64_t now_us) override {
    static_cast<void>(
        recorder_->set_health(ids_[replica], yes ? Health::up : Health::draining, "simulation", at(now_us)));
  }

 private:
  static Nanos at(std::int64_t us) noexcept { return microseconds(us); }
  static BlockHash hash_of(std::uint64_t block) noexcept { return BlockHash{SplitMix64{block}.next()}; }
  RuleSetting setting_;
  std::unique_ptr<DecisionRecorder> recorder_;
  std::vector<ReplicaId> ids_;
  std::vector<Ticket> tickets_;
  std::vector<BlockHash> hashes_;
};

/// Some 3,600 requests of the public slice on four replicas, with late events, loads and churn.
void record_a_fleet(const std::string& path, const char* view, const Policy& policy = {}) {
  auto slice = read_mooncake_trace(WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl");
  ASSERT_TRUE(slice.ok());
  std::vector<TraceRecord> records;
  for (std::int64_t pass = 0; pass < 3; ++pass) {
    for (TraceRecord r : *slice) {
      r.arrival_us += pass * 414'000'000;
      r.output_tokens = std::min<std::int64_t>(r.output_tokens, 40);  // a quicker simulation
      records.push_back(std::move(r));
    }
  }
  SimulationConfig config;
  config.replica.hardware = *find_hardware_profile("70b-8xh100");
  config.replicas = 4;
  config.view = *find_view(view);
  config.view.waiting_tokens = true;
  config.own_rule = [&](const RuleSetting& setting) { return std::make_unique<RecordedRule>(setting, path, policy); };
  config.churn = *parse_churn("100 remove 3, 150 add, 200 flap 1 5, 300 rolling 0-2 20");
  const auto figures = simulate(config, open_loop(std::move(records)));
  ASSERT_TRUE(figures.ok()) << figures.error().message;
  EXPECT_GT(figures->completed, 3'500);
}

TEST(DecisionLog, ASimulatedRunReplaysToTheSameDecisions) {
  for (const char* view : {"stale-fix", "own-approx"}) {
    SCOPED_TRACE(view);
    const std::string path = log_path(view);
    record_a_fleet(path, view);
    const DecisionReplay result = replay(path);
    EXPECT_GE(result.decisions, 3'600u);
    EXPECT_GT(result.records, 3 * result.decisions - 20);
    EXPECT_TRUE(result.identical()) << places(result);
    EXPECT_EQ(result.torn_bytes, 0u);
    std::remove(path.c_str());
  }
}

TEST(DecisionLog, RingRulesReplayToo) {
  for (const char* json : {R"({"algorithm":"bounded_hash"})", R"({"algorithm":"random","seed":9})",
                           R"({"routers":4,"ring_key":"session_or_prefix"})"}) {
    SCOPED_TRACE(json);
    const std::string path = log_path("ring");
    record_a_fleet(path, "own-approx", *policy_from_json(json));
    const DecisionReplay result = replay(path);
    EXPECT_TRUE(result.identical()) << places(result);
    std::remove(path.c_str());
  }
}

TEST(DecisionLog, AKnobShowsWhereDecisionsPart) {
  const std::string path = log_path("knob");
  record_a_fleet(path, "own-approx");
  DecisionReplayOptions options;
  options.change = R"({"gamma":0.5})";
  const DecisionReplay other = replay(path, options);
  ASSERT_TRUE(other.first_difference.has_value());
  ASSERT_TRUE(other.first_other_choice.has_value());
  EXPECT_GT(other.other_choices, 10u);
  EXPECT_LT(other.other_choices, other.decisions);
  EXPECT_LE(other.first_difference->record, other.first_other_choice->record);
  EXPECT_NE(other.first_other_choice->recorded.replica, other.first_other_choice->replayed.replica);
  EXPECT_EQ(other.first_other_choice->call, DecisionCall::route);
  options.max_records = other.first_other_choice->record;  // up to there, and not that one
  EXPECT_EQ(replay(path, options).other_choices, 0u);
  options.max_records += 1;
  EXPECT_EQ(replay(path, options).other_choices, 1u);
  options.change = "{\"gamma\":" + std::to_string(Policy{}.gamma) + "}";  // what it is anyway
  options.max_records = 0;
  EXPECT_TRUE(replay(path, options).identical());
  options.change = R"({"gama":1})";
  auto log = DecisionLogReader::open(path);
  EXPECT_EQ(replay_decisions(*log, options).code(), Code::invalid_argument);
  std::remove(path.c_str());
}

/// Calls of every kind in random order, right ones and wrong ones. Gives each call to `recorder` and counts them.
class AnyCalls {
 public:
  explicit AnyCalls(DecisionRecorder& recorder, std::uint64_t seed) : recorder_(recorder), random_(seed) {}

  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      now_.value += random_.between(-1'000'000, 30'000'000);
      const std::uint64_t kind = random_.below(100);
      if (kind < 45) route();
      else if (kind < 85) on_ticket();
      else if (kind < 95) event();
      else member();
    }
  }

 private:
  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }
  ReplicaId any_replica() {
    return ids_.empty() || chance(20) ? ReplicaId{static_cast<std::uint32_t>(random_.below(9)), 1}
                                      : ids_[static_cast<std::size_t>(random_.below(ids_.size()))];
  }
  void tokens(std::vector<std::uint32_t>& out) {  // a few conversations that grow
    const std::uint64_t who = random_.below(6);
    out.resize(static_cast<std::size_t>(random_.below(400)));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint32_t>(i / 50 == 0 ? i : i * 7 + who);
  }
  void route() {
    std::vector<std::uint32_t> ids;
    std::vector<BlockHash> blocks;
    std::vector<ReplicaId> excluded;
    const std::string session = "s" + std::to_string(random_.below(9)), tenant = "t" + std::to_string(random_.below(3));
    tokens(ids);
    Request r;
    r.model = chance(3) ? "big" : "";
    if (chance(2)) r.session = session;
    if (chance(3)) r.tenant = tenant;
    if (chance(9)) r.adapter = "lora";
    if (chance(5)) {
      for (std::uint64_t i = random_.below(30); i > 0; --i) blocks.push_back(BlockHash{random_.below(5)});
      r.blocks = blocks;
      r.block_kind = BlockKind::text;
      r.prompt_bytes = static_cast<std::int64_t>(blocks.size() * 64);
    } else {
      r.token_ids = ids;
    }
    if (chance(4)) r.max_output_tokens = 100;
    if (chance(9)) excluded = {any_replica(), any_replica()};
    r.excluded = excluded;
    if (chance(30)) r.pinned = any_replica();
    r.priority = static_cast<std::int32_t>(random_.below(3)) - 1;
    const Decision foreseen = recorder_.peek(r, now_);
    const Decision d = recorder_.route(r, now_);
    EXPECT_EQ(foreseen.verdict, d.verdict);
    EXPECT_EQ(foreseen.cached_tokens, d.cached_tokens);
    tickets_.push_back(d.ticket);
  }
  void on_ticket() {
    if (tickets_.empty()) return;
    const auto i = static_cast<std::size_t>(random_.below(tickets_.size()));
    const Ticket ticket = chance(30) ? Ticket{random_.next()} : tickets_[i];
    if (chance(2)) {
      recorder_.first_token(ticket, now_);
      return;
    }
    if (chance(5)) recorder_.fail(ticket, static_cast<Outcome>(1 + random_.below(6)), now_);
    else recorder_.finish(ticket, {kUnknown, random_.between(-1, 200), random_.between(0, 300)}, now_);
    if (!chance(10)) tickets_.erase(tickets_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void event() {
    std::vector<std::uint32_t> ids;
    std::vector<EngineHash> names;
    const ReplicaId id = chance(3) ? any_replica() : reporting_;
    const Tier tier = static_cast<Tier>(random_.below(4));
    switch (random_.below(6)) {
      case 4: {  // a peer's word, some of it impossible or of nobody here
        std::vector<PeerLoad> loads;
        for (std::uint64_t i = random_.below(5); i > 0; --i)
          loads.push_back({"r" + std::to_string(i), 0, random_.between(-1, 9), random_.between(0, 9),
                           random_.between(0, 900'000'000), random_.between(0, 90'000),
                           random_.between(-1, 9'000'000)});
        static_cast<void>(recorder_.peer_loads(static_cast<std::uint32_t>(random_.below(1'030)), loads, now_));
        return;
      }
      case 5: {
        tokens(ids);
        Request r;
        r.token_ids = ids;
        static_cast<void>(recorder_.peer_placed(id, r, now_));
        return;
      }
      case 0:
        static_cast<void>(
            recorder_.signal(id, static_cast<Signal>(random_.below(5)), static_cast<double>(random_.below(100)), now_));
        return;
      case 1: static_cast<void>(recorder_.prefix_counters(id, {random_.between(0, 999), 5, true, false}, now_)); return;
      case 2: {
        tokens(ids);
        if (!chance(9)) ids.resize(ids.size() / 16 * 16);
        for (std::size_t i = 0; i < ids.size() / 16; ++i) names.push_back(EngineHash{ids[i * 16] + 100 * i});
        StoredBlocks stored;
        stored.tier = tier;
        stored.ids = names;
        stored.token_ids = ids;
        static_cast<void>(recorder_.blocks_stored(id, stored, now_));
        return;
      }
      default:
        for (std::uint64_t i = 0; i < 5; ++i) names.push_back(EngineHash{random_.below(2'000)});
        if (chance(2)) static_cast<void>(recorder_.blocks_removed(id, tier, names, now_));
        else static_cast<void>(recorder_.blocks_also_on(id, tier, names, now_));
    }
  }
  void member() {
    switch (random_.below(11)) {
      case 0:
      case 1:
      case 2: {
        ReplicaSpec spec;
        spec.name = "r" + std::to_string(random_.below(6));
        spec.pool = chance(3) ? "big" : "";
        spec.labels = {{"address", "10.0.0.1"}};
        if (chance(4)) spec.adapters = {"lora"};
        spec.weight = chance(3) ? 2.5 : 1;
        if (chance(3)) spec.slow_start = milliseconds(300);
        if (const auto id = recorder_.add_replica(spec, now_)) {
          ids_.push_back(*id);
          reporting_ = *id;
        }
        return;
      }
      case 3:
        if (ids_.size() > 2) {
          static_cast<void>(recorder_.remove_replica(ids_.front(), now_));
          ids_.erase(ids_.begin());
        }
        return;
      case 4:
        static_cast<void>(recorder_.set_health(any_replica(), static_cast<Health>(random_.below(3)), "why", now_));
        return;
      case 5: {
        const ReplicaId id = any_replica();
        if (const auto cache = recorder_.router().cached(id, now_)) {
          static_cast<void>(recorder_.clear_cache(id, now_));
          static_cast<void>(recorder_.restore_cached(id, *cache, now_, seconds(1)));
        }
        return;
      }
      case 6: {
        Policy policy = recorder_.policy();
        policy.gamma = static_cast<double>(random_.below(100)) / 100;
        policy.isolation = static_cast<Isolation>(random_.below(2));
        policy.saturation_wait = milliseconds(chance(2) ? 5 : 0);
        policy.saturation_kv = chance(2) ? 0.9 : 0;
        if (chance(4)) policy.hash_seed = random_.next();
        if (chance(4)) policy.beta = -1;  // refused
        EXPECT_EQ(recorder_.set_policy(policy).ok(), policy.beta >= 0);
        return;
      }
      case 7: static_cast<void>(recorder_.clear_shared_store("big")); return;
      case 8:
        static_cast<void>(recorder_.drain(any_replica(), now_ + milliseconds(random_.between(0, 500)), now_));
        return;
      case 9: {
        if (auto learned = recorder_.router().learned(chance(3) ? "big" : "")) {
          for (LearnedKind& kind : learned->kinds) kind.declared.floor_ns += chance(9) ? 1 : 0;
          static_cast<void>(recorder_.restore_learned(chance(3) ? "big" : "", *learned));
        }
        return;
      }
      default: recorder_.advance(now_); return;
    }
  }

  DecisionRecorder& recorder_;
  SplitMix64 random_;
  Nanos now_{5'000'000'000};
  std::vector<ReplicaId> ids_;
  ReplicaId reporting_;
  std::vector<Ticket> tickets_;
};

void record_any_calls(const std::string& path, std::uint64_t seed, int calls, const DecisionLogOptions& options = {}) {
  auto recorder = DecisionRecorder::open(path, {.max_tickets = 4'096}, options);
  ASSERT_TRUE(recorder.ok()) << recorder.error().message;
  AnyCalls(*recorder, seed).run(calls);
  EXPECT_FALSE(recorder->log_statistics().ended);
}

TEST(DecisionLog, CallsOfEveryKindReplayToTheSameDecisions) {
  const std::string path = log_path("any");
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    record_any_calls(path, seed, 3'000);
    const DecisionReplay result = replay(path);
    EXPECT_GT(result.decisions, 1'000u);
    EXPECT_TRUE(result.identical()) << "seed " << seed << ": " << places(result);
  }
  std::remove(path.c_str());
}

TEST(DecisionLog, ARouterInFrontOfARecorderIsRecordedWhoeverUsesIt) {
  const std::string path = log_path("front");
  {
    auto recorder = DecisionRecorder::open(path);
    ASSERT_TRUE(recorder.ok());
    Router router(recorder->calls());
    const DecisionRecorder moved = std::move(*recorder);  // what is behind the router stays
    Policy policy;
    policy.gamma = 0.5;
    ASSERT_TRUE(router.set_policy(policy).ok());
    EXPECT_EQ(router.policy(), policy);
    ReplicaSpec spec{.name = "a", .pool = "big"};
    ASSERT_TRUE(router.add_replica(spec, Nanos{1}).ok());
    ASSERT_TRUE(router.add_replica({.name = "b", .pool = "big"}, Nanos{1}).ok());
    EXPECT_EQ(router.replicas().size(), 2u);
    EXPECT_EQ(router.find_replica("b")->slot, 1u);
    EXPECT_EQ(router.replica(*router.find_replica("a"))->pool, "big");
    ModelRouter models(router);
    ASSERT_TRUE(models.set_map(*model_map_from_json(R"({"models":[{"name":"m","targets":[{"pool":"big"}]}]})")).ok());
    std::vector<std::uint32_t> ids(64, 7);
    for (int i = 0; i < 20; ++i) {
      Request r;
      r.model = "m";
      r.token_ids = ids;
      const Nanos now = milliseconds(10 * i + 2);
      const ModelDecision d = models.route(r, now);
      ASSERT_TRUE(d.decision.routed());
      EXPECT_TRUE(router.first_token(d.decision.ticket, now));
      EXPECT_EQ(router.requests_in_flight("big"), 1);
      EXPECT_TRUE(router.finish(d.decision.ticket, {64, 0, 3}, now + milliseconds(1)));
    }
    EXPECT_EQ(router.statistics().outcomes[0], 20u);
    EXPECT_TRUE(router.learned("big").ok());
    EXPECT_EQ(router.cached(*router.find_replica("a"), Nanos{9}).code(), Code::unsupported);
    EXPECT_EQ(moved.log_statistics().records, 3u + 3 * 20);
  }
  const DecisionReplay result = replay(path);
  EXPECT_EQ(result.decisions, 20u);
  EXPECT_TRUE(result.identical()) << places(result);
  std::remove(path.c_str());
}

TEST(DecisionLog, HoldsNothingThatCouldBeConfirmed) {
  const std::string path = log_path("private");
  std::vector<std::uint32_t> ids(64);
  for (std::uint32_t i = 0; i < 64; ++i) ids[i] = i;
  std::array<BlockHash, 4> hashes{};
  hash_token_blocks(ids, 16, block_seed({}), hashes);
  Policy policy;
  policy.hash_seed = 0x1122'3344'5566'7788;
  const auto record = [&](const DecisionLogOptions& options) {
    auto recorder = DecisionRecorder::open(path, {}, options);
    ASSERT_TRUE(recorder.ok());
    ASSERT_TRUE(recorder->set_policy(policy).ok());
    EXPECT_EQ(recorder->policy(), policy);
    ReplicaSpec spec;
    spec.name = "gpu-0";
    spec.labels = {{"address", "secret-host"}};
    const auto id = recorder->add_replica(spec, Nanos{1});
    Request r;
    r.session = "secret-session";
    r.tenant = "secret-tenant";
    r.cache_salt = "secret-salt";
    r.blocks = hashes;
    recorder->route(r, Nanos{2});
    const EngineHash name{0x0102'0304'0506'0708};
    StoredBlocks stored;
    stored.ids = {&name, 1};
    stored.blocks = {hashes.data(), 1};
    EXPECT_TRUE(recorder->blocks_stored(*id, stored, Nanos{3}).ok());
  };
  DecisionLogOptions keyed;
  keyed.key = kKey;
  record(keyed);
  const std::string bytes = bytes_of(path);
  EXPECT_EQ(bytes.find("secret"), std::string::npos);
  EXPECT_EQ(bytes.find("1234605616436508552"), std::string::npos);  // the hash seed, as JSON writes it
  const auto holds = [&](std::uint64_t word) {
    return bytes.find(std::string(reinterpret_cast<const char*>(&word), sizeof word)) != std::string::npos;
  };
  for (const BlockHash hash : hashes) EXPECT_FALSE(holds(to_u64(hash)));
  EXPECT_FALSE(holds(0x0102'0304'0506'0708));
  EXPECT_TRUE(holds(SipKey(kKey).derive("block").of(to_u64(hashes[0]))));
  DecisionRecord first, again;
  const auto prompt = [&](DecisionRecord& r) {
    auto log = DecisionLogReader::open(path);
    while (log->next(r).ok() && r.call != DecisionCall::route) {}
  };
  prompt(first);
  record({});  // another key, drawn
  prompt(again);
  EXPECT_EQ(first.blocks.size(), again.blocks.size());
  EXPECT_NE(first.blocks, again.blocks);
  EXPECT_NE(first.request.session, again.request.session);
  std::remove(path.c_str());
}

TEST(DecisionLog, ATornTailIsCutWhereverItTears) {
  const std::string path = log_path("torn");
  record_any_calls(path, 3, 60);
  const std::string bytes = bytes_of(path);
  std::remove(path.c_str());
  DecisionRecord record;
  {
    auto log = DecisionLogReader::from_bytes(bytes);
    ASSERT_TRUE(log.ok());
    std::uint64_t whole = 0;
    while (*log->next(record)) ++whole;
    EXPECT_GT(whole, 50u);
  }
  std::uint64_t before = 0;
  std::size_t heads = 0;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string piece = bytes.substr(0, cut);  // a copy, so that a reader beyond its end is noticed
    auto log = DecisionLogReader::from_bytes(piece);
    if (!log) {
      EXPECT_EQ(log.code(), Code::malformed);
      ++heads;
      continue;
    }
    std::uint64_t whole = 0;
    while (true) {
      const auto more = log->next(record);
      ASSERT_TRUE(more.ok()) << cut << ": " << more.error().message;
      if (!*more) break;
      ++whole;
    }
    EXPECT_TRUE(whole == before || whole == before + 1) << cut;
    EXPECT_EQ(whole != before, log->torn_bytes() == 0 && cut > 81) << cut;
    before = whole;
  }
  EXPECT_EQ(heads, 80u);
  const std::string zeros = bytes + std::string(100, '\0');  // as some file systems leave them after a crash
  auto log = DecisionLogReader::from_bytes(zeros);
  while (*log->next(record)) {}
  EXPECT_EQ(log->torn_bytes(), 100u);
}

TEST(DecisionLog, ADamagedByteIsNoticed) {
  const std::string path = log_path("damaged");
  record_any_calls(path, 4, 40);
  const std::string bytes = bytes_of(path);
  std::remove(path.c_str());
  DecisionRecord record;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    auto log = DecisionLogReader::from_bytes(changed);
    if (!log) continue;
    std::uint64_t whole = 0;
    while (true) {
      const auto more = log->next(record);
      if (!more || !*more) {
        if (more) EXPECT_GT(log->torn_bytes(), 0u) << at;
        else EXPECT_TRUE(more.code() == Code::malformed || more.code() == Code::too_large) << at;
        break;
      }
      ++whole;
    }
    EXPECT_FALSE(*log->next(record)) << "nothing comes behind an error";
  }
  EXPECT_EQ(DecisionLogReader::from_bytes("{\"timestamp\":0}").code(), Code::malformed);
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(DecisionLogReader::from_bytes(newer).code(), Code::unsupported);
  EXPECT_EQ(DecisionLogReader::open("/nonexistent/log").code(), Code::io);
}

TEST(DecisionLog, EndsWhenItIsFullAndTheCallsGoOn) {
  const std::string path = log_path("full");
  DecisionLogOptions options;
  options.max_bytes = 3'000;
  {
    auto recorder = DecisionRecorder::open(path, {}, options);
    ASSERT_TRUE(recorder.ok());
    ReplicaSpec spec;
    spec.name = "a";
    ASSERT_TRUE(recorder->add_replica(spec, Nanos{1}).ok());
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(recorder->route({}, Nanos{2}).routed());
    const auto statistics = recorder->log_statistics();
    EXPECT_TRUE(statistics.ended);
    EXPECT_EQ(statistics.reason, "the log has max_bytes");
    EXPECT_EQ(statistics.records + statistics.unrecorded, 201u);
    EXPECT_LE(statistics.bytes, 3'000u);
    EXPECT_EQ(recorder->flush().code(), Code::io);
  }
  const DecisionReplay result = replay(path);
  EXPECT_TRUE(result.identical());
  EXPECT_GT(result.decisions, 20u);
  std::remove(path.c_str());
  EXPECT_EQ(DecisionRecorder::open("/nonexistent/log").code(), Code::io);
}

TEST(DecisionLog, PrintsAsJsonLines) {
  const std::string path = log_path("json");
  DecisionLogOptions options;
  options.key = kKey;
  {
    auto recorder = DecisionRecorder::open(path, {}, options);
    ASSERT_TRUE(recorder->set_policy({}).ok());
    ReplicaSpec spec;
    spec.name = "gpu \"0\"";
    const auto id = recorder->add_replica(spec, Nanos{5});
    const std::array<BlockHash, 2> blocks{BlockHash{1}, BlockHash{2}};
    Request r;
    r.model = "m";
    r.blocks = blocks;
    r.input_tokens = 40;
    const Decision d = recorder->route(r, Nanos{7});
    recorder->finish(d.ticket, {.cached_tokens = 16}, Nanos{9});
    static_cast<void>(recorder->set_health(ReplicaId{77, 1}, Health::down, "", Nanos{9}));
    static_cast<void>(id);
  }
  auto log = DecisionLogReader::open(path);
  DecisionRecord record;
  std::vector<std::string> lines;
  while (*log->next(record)) append_json_line(record, lines.emplace_back());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with(R"({"record":0,"now_ns":0,"call":"set_policy","digest":")")) << lines[0];
  EXPECT_NE(lines[0].find(R"("policy":{"algorithm": "cost","beta": 1,)"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  lines.erase(lines.begin());
  EXPECT_TRUE(
      lines[0].starts_with(R"({"record":1,"now_ns":5,"call":"add_replica","replica":"0.1","name":"gpu \"0\"",)"))
      << lines[0];
  EXPECT_TRUE(
      lines[1].starts_with(R"({"record":2,"now_ns":7,"call":"route","model":"m","block_kind":"tokens","blocks":2,)"
                           R"("input_tokens":40,"decision":{"verdict":"routed","reason":"only_candidate",)"
                           R"("replica":"0.1",)"))
      << lines[1];
  EXPECT_TRUE(lines[2].ends_with(R"("cached_tokens":16})")) << lines[2];
  EXPECT_EQ(lines[3],
            R"({"record":4,"now_ns":9,"call":"set_health","replica":"77.1","error":"stale","health":"down"})");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace warmroute::trace::decision_log_test
