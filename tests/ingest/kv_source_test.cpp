#include "warmroute/ingest/kv_source.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kv_build.hpp"
#include "kv_engine.hpp"

namespace warmroute {
namespace {

using simdjson::dom::element;

constexpr std::uint32_t kBlock = 4;

std::uint64_t number(std::string_view text) {
  if (text.starts_with("0x")) return std::stoull(std::string(text.substr(text.size() - 16)), nullptr, 16);
  return std::stoull(std::string(text));
}

// One event of the file as an engine would send it.
std::string wire(element event) {
  const std::string_view type = event["type"];
  const auto text = [&](const char* key) {
    std::string_view value;
    return event[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
  };
  const auto group = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    if (event["group_idx"].get(value) != simdjson::SUCCESS) return {};
    return value;
  };
  test::Ids ids;
  bool bytes = false;
  simdjson::dom::array hashes;
  if (event["block_hashes"].get(hashes) == simdjson::SUCCESS) {
    for (const std::string_view hash : hashes) {
      ids.push_back(number(hash));
      bytes = bytes || hash.starts_with("0x");
    }
  }
  if (type == "cleared") return test::cleared();
  if (type == "removed") return test::removed(ids, text("medium"), group());
  test::Stored stored;
  if (type == "invalid") {  // three tokens where four belong
    stored.ids = {77};
    stored.tokens = {1, 2, 3};
    return stored.as_map();
  }
  stored.ids = ids;
  if (const std::string parent = text("parent"); !parent.empty()) stored.parent = number(parent);
  simdjson::dom::array tokens;
  if (event["token_ids"].get(tokens) == simdjson::SUCCESS) {
    for (element token : tokens) {
      simdjson::dom::array pair;
      if (token.get(pair) != simdjson::SUCCESS) {
        stored.tokens.push_back(token.get_uint64());
        continue;
      }
      stored.pairs = true;
      if (stored.tokens.empty()) stored.tokens.push_back(pair.at(0).get_uint64());
      stored.tokens.push_back(pair.at(1).get_uint64());
    }
  }
  stored.size = event["block_size"].get_uint64();
  stored.medium = text("medium");
  stored.lora_name = text("lora_name");
  stored.salt = text("cache_salt");
  stored.kind = text("kv_cache_spec_kind");
  stored.group = group();
  return stored.as_map();
}

struct Case {
  std::string id, line;
};
std::vector<Case> cases() {
  std::vector<Case> out;
  std::ifstream file(WARMROUTE_TEST_DATA "/kv_sequences.jsonl");
  for (std::string line; std::getline(file, line);) {
    simdjson::dom::parser parser;
    out.push_back({std::string(std::string_view(parser.parse(line)["id"])), line});
  }
  return out;
}

class KvSequences : public testing::TestWithParam<Case> {};

TEST_P(KvSequences, EndInWhatTheEnginesHold) {
  simdjson::dom::parser parser;
  const element doc = parser.parse(GetParam().line);
  Router router;
  Policy policy;
  policy.block_size = kBlock;
  ASSERT_TRUE(router.set_policy(policy));
  std::map<std::string, ReplicaId> replicas;
  std::map<std::string, KvSource> sources;
  struct Notes {
    std::vector<std::string> lines;
  } notes;
  Nanos now{0};
  KvSourceOptions options;
  options.events = kv_event_options(policy);
  options.replay = doc["config"]["replay"].get_bool();
  options.replay_attempts = 1;  // the file asks once
  options.user = &notes;
  options.notice = [](void* user, const KvNotice& n) {
    auto& lines = static_cast<Notes*>(user)->lines;
    const auto range = std::to_string(n.from) + "-" + std::to_string(n.to);
    switch (n.kind) {
      case KvNoticeKind::gap: lines.push_back("gap " + range); break;
      case KvNoticeKind::replay_complete: lines.push_back("replay_complete " + range); break;
      case KvNoticeKind::resync:
        lines.push_back(n.reason == KvResync::replay_overrun ? "resync replay_overrun " + range
                                                             : "resync gap_without_replay");
        break;
      case KvNoticeKind::restart: lines.push_back("restart " + range); break;
      case KvNoticeKind::cleared: lines.push_back("cleared"); break;
      case KvNoticeKind::bad_event: lines.push_back("bad_event " + std::string(kv_fault_name(n.fault))); break;
      case KvNoticeKind::block_size: lines.push_back("block_size_mismatch " + range); break;
      case KvNoticeKind::unknown_block:
        lines.push_back("unknown_block " + std::to_string(static_cast<std::uint64_t>(n.block)));
        break;
      default: break;  // orphans: below
    }
  };
  const auto source = [&](const std::string& name, std::uint64_t rank) -> KvSource& {
    const std::string key = name + "/" + std::to_string(rank);
    if (!replicas.contains(key)) {
      replicas[key] = *router.add_replica({.name = name, .dp_rank = static_cast<std::uint32_t>(rank)}, now);
      sources.emplace(key, KvSource(router, replicas[key], options));
    }
    return sources.at(key);
  };
  for (element m : doc["messages"].get_array()) {
    now += milliseconds(1);
    KvSource& s = source(std::string(std::string_view(m["replica"])), m["rank"].get_uint64());
    const std::string_view kind = m["kind"];
    std::vector<std::string> events;
    simdjson::dom::array list;
    if (m["events"].get(list) == simdjson::SUCCESS) {
      for (element event : list) events.push_back(wire(event));
    }
    const std::string payload = test::batch(events);
    KvMessage message;
    message.payload = payload;
    message.replay_end = kind == "replay_end";
    if (!message.replay_end) message.seq = m["seq"].get_uint64();
    if (kind == "live") s.live(message, now);
    else s.replayed(message, now);
  }

  for (element query : doc["expect"]["queries"].get_array()) {
    std::vector<std::uint32_t> tokens;
    for (element t : query["tokens"].get_array()) tokens.push_back(static_cast<std::uint32_t>(t.get_uint64()));
    std::string_view adapter, salt;
    const auto optional = [&](const char* key, auto& value) {
      if (query[key].get(value) != simdjson::SUCCESS) value = {};
    };
    optional("lora_name", adapter);
    optional("cache_salt", salt);
    bool eagle = false;
    optional("is_eagle", eagle);
    std::vector<BlockHash> hashes(tokens.size() / kBlock);
    HashSpace space;
    space.adapter = adapter;
    space.cache_salt = salt;
    hashes.resize(eagle ? hash_eagle_blocks(tokens, kBlock, block_seed(space), hashes)
                        : hash_token_blocks(tokens, kBlock, block_seed(space), hashes));
    for (const auto [key, match] : query["match"].get_object()) {
      Request r;
      r.blocks = hashes;
      r.adapter = adapter;
      r.pinned = replicas.at(std::string(key));
      r.input_tokens = static_cast<std::int64_t>(tokens.size() + 1);  // the last token is always computed
      const Decision d = router.peek(r, now);
      EXPECT_EQ(d.total_cached().value, match["any"].get_int64().value() * kBlock) << key;
      EXPECT_EQ(d.cached_tokens[0].value, match["device"].get_int64().value() * kBlock) << key;
    }
  }

  std::vector<std::string> expected;
  std::size_t orphans = 0, attached = 0;
  for (element n : doc["expect"]["notices"].get_array()) {
    const std::string kind{std::string_view(n["kind"])};
    const auto whole = [&](const char* key) { return std::to_string(n[key].get_uint64().value()); };
    if (kind == "gap" || kind == "replay_complete") expected.push_back(kind + " " + whole("from") + "-" + whole("to"));
    else if (kind == "restart") expected.push_back("restart " + whole("last") + "-" + whole("got"));
    else if (kind == "resync") {
      const std::string reason{std::string_view(n["reason"])};
      expected.push_back("resync " + reason +
                         (reason == "replay_overrun" ? " " + whole("missing_from") + "-" + whole("missing_to") : ""));
    } else if (kind == "bad_event") expected.push_back("bad_event " + std::string(std::string_view(n["error"])));
    else if (kind == "block_size_mismatch")
      expected.push_back("block_size_mismatch " + whole("got") + "-" + whole("want"));
    else if (kind == "unknown_block") expected.push_back("unknown_block " + std::string(std::string_view(n["hash"])));
    else if (kind == "cleared") expected.push_back(kind);
    else if (kind == "orphan") ++orphans;
    else if (kind == "orphan_attached") ++attached;
  }
  EXPECT_EQ(notes.lines, expected);
  // A parent that was cleared a moment ago is still known by name: its child needs no waiting, and is out of reach until it is back.
  std::size_t waiting = 0;
  for (const auto& [key, s] : sources) waiting += s.status().orphan_blocks;
  EXPECT_LE(waiting, orphans - attached);
}

INSTANTIATE_TEST_SUITE_P(All, KvSequences, testing::ValuesIn(cases()), [](const auto& c) {
  std::string name = c.param.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// ---------------------------------------------------------------- an engine, its publisher, and a lossy line

// An engine with all that it published.
class Engine : public test::CacheEngine {
 public:
  using CacheEngine::CacheEngine;
  void step() { published_.push_back(CacheEngine::step()); }
  void restart() {
    CacheEngine::restart();
    published_.clear();
  }
  [[nodiscard]] std::uint64_t next_seq() const { return published_.size(); }
  [[nodiscard]] const std::string& message(std::uint64_t seq) const { return published_[seq]; }

 private:
  std::vector<std::string> published_;
};

class KvSourceLoss : public testing::TestWithParam<std::uint32_t> {};

TEST_P(KvSourceLoss, AfterTheLastFaultTheIndexEqualsTheEnginesCache) {
  std::mt19937 random(GetParam());
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Router router;
  Policy policy;
  policy.block_size = kBlock;
  ASSERT_TRUE(router.set_policy(policy));
  const ReplicaId id = *router.add_replica({.name = "r"}, Nanos{0});
  KvSourceOptions options;
  options.events = kv_event_options(policy);
  options.replay = GetParam() % 4 != 0;
  options.replay_timeout = milliseconds(20);
  options.replay_attempts = 6;  // one message in 20 is lost: six times the same one is not
  KvSource source(router, id, options);
  Engine engine(GetParam());
  Nanos now{0};
  const auto deliver_live = [&](std::uint64_t seq) {
    KvMessage m;
    m.seq = seq;
    m.payload = engine.message(seq);
    source.live(m, now);
  };
  // Answers a replay request; `lossy`: some messages of it, or its end, do not come.
  const auto answer = [&](bool lossy) {
    const auto from = source.wants_replay();
    if (!from) return;
    for (std::uint64_t seq = *from; seq < engine.next_seq(); ++seq) {
      if (lossy && below(20) == 0) continue;
      KvMessage m;
      m.seq = seq;
      m.payload = engine.message(seq);
      source.replayed(m, now);
    }
    if (lossy && below(10) == 0) return;
    KvMessage end;
    end.replay_end = true;
    source.replayed(end, now);
  };
  for (int step = 0; step < 3'000; ++step) {
    now += milliseconds(1);
    if (below(400) == 0) engine.restart();
    engine.step();
    if (below(100) != 0) deliver_live(engine.next_seq() - 1);
    if (below(3) == 0) answer(true);
    source.advance(now);
    // Never more than the engine holds, but for what a message that is still on its way would take back.
    if (source.status().state == KvSourceState::live && source.status().next == engine.next_seq() && options.replay &&
        source.status().resyncs == 0 && step % 50 == 0) {
      for (std::size_t c = 0; c < 8; ++c) {
        const auto tokens = test::narrow(Engine::tokens(c, 0, 13));
        Request r;
        r.token_ids = tokens;
        ASSERT_EQ(router.peek(r, now).total_cached().value, static_cast<std::int64_t>(engine.depth(c) * kBlock));
      }
    }
  }
  // The faults are over: one more message, one replay if it is asked for, and the engine starts each conversation anew.
  for (int i = 0; i < 8; ++i) {
    now += milliseconds(30);
    engine.step();
    deliver_live(engine.next_seq() - 1);
    answer(false);
    source.advance(now);
    answer(false);
  }
  EXPECT_EQ(source.status().state, KvSourceState::live);
  EXPECT_EQ(source.status().next, engine.next_seq());
  EXPECT_EQ(source.status().held_bytes, 0u);
  EXPECT_GT(source.status().gaps, 10u);
  EXPECT_GT(source.status().restarts, 0u);
  for (std::size_t c = 0; c < 8; ++c) {
    const auto tokens = test::narrow(Engine::tokens(c, 0, 13));
    Request r;
    r.token_ids = tokens;
    const std::int64_t credited = router.peek(r, now).total_cached().value;
    const auto held = static_cast<std::int64_t>(engine.depth(c) * kBlock);
    if (options.replay) EXPECT_EQ(credited, held) << "conversation " << c;
    else EXPECT_LE(credited, held) << "conversation " << c << ": what was lost without a replay is not credited";
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, KvSourceLoss, testing::Range(1u, 13u));

class KvSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    policy.block_size = kBlock;
    ASSERT_TRUE(router.set_policy(policy));
    id = *router.add_replica({.name = "r"}, now);
    options.events = kv_event_options(policy);
    options.replay = true;
  }
  void live(KvSource& source, std::uint64_t seq, std::string_view payload) {
    KvMessage m;
    m.seq = seq;
    m.payload = payload;
    source.live(m, now += milliseconds(1));
  }
  static std::string stored(std::uint64_t block, std::optional<std::uint64_t> parent) {
    test::Stored s;
    s.ids = {block};
    s.parent = parent;
    s.tokens = test::count_from(block * 100, kBlock);
    return test::batch({s.as_map()});
  }
  Router router;
  Policy policy;
  ReplicaId id;
  KvSourceOptions options;
  Nanos now{0};
};

TEST_F(KvSourceTest, AMessageThatCannotBeReadClearsTheCacheAndTheNextOneGoesOn) {
  KvSource source(router, id, options);
  live(source, 0, stored(1, {}));
  live(source, 1, "\xc1garbage");
  EXPECT_EQ(source.status().bad_messages, 1u);
  EXPECT_EQ(source.status().next, 2u);
  live(source, 2, stored(2, {}));
  const auto tokens = test::narrow(test::count_from(200, 5));
  Request r;
  r.token_ids = tokens;
  EXPECT_EQ(router.peek(r, now).total_cached().value, kBlock);
}

TEST_F(KvSourceTest, AReplayThatNeverEndsIsAskedForAgainAndThenGivenUp) {
  options.replay_attempts = 2;
  KvSource source(router, id, options);
  live(source, 0, stored(1, {}));
  live(source, 5, stored(6, {}));
  EXPECT_EQ(source.wants_replay(), 1u);
  EXPECT_EQ(source.wants_replay(), std::nullopt) << "once per attempt";
  source.advance(now += seconds(3));
  EXPECT_EQ(source.wants_replay(), 1u);
  source.advance(now += seconds(3));
  EXPECT_EQ(source.wants_replay(), std::nullopt);
  EXPECT_EQ(source.status().state, KvSourceState::live);
  EXPECT_EQ(source.status().resyncs, 1u);
  EXPECT_EQ(source.status().next, 6u) << "what was held is applied";
}

TEST_F(KvSourceTest, WhatWaitsForAReplayIsBounded) {
  options.max_held_bytes = 2'000;
  KvSource source(router, id, options);
  live(source, 0, stored(1, {}));
  for (std::uint64_t seq = 2; seq < 200; ++seq) {
    live(source, seq, stored(seq, {}));
    EXPECT_LE(source.status().held_bytes, 2'100u);
  }
  EXPECT_EQ(source.status().resyncs, 1u);
  EXPECT_EQ(source.status().next, 200u);
}

TEST_F(KvSourceTest, OrphansAreBoundedAndGoWithTime) {
  options.max_orphan_blocks = 10;
  KvSource source(router, id, options);
  for (std::uint64_t i = 0; i < 50; ++i) live(source, i, stored(1'000 + i * 2, 999 + i * 2));
  EXPECT_EQ(source.status().orphan_blocks, 10u);
  source.advance(now += seconds(60));
  EXPECT_EQ(source.status().orphan_blocks, 0u);
}

TEST_F(KvSourceTest, AnOrphanThatIsRemovedDoesNotComeBackWithItsParent) {
  KvSource source(router, id, options);
  live(source, 0, stored(2, 1));
  live(source, 1, test::batch({test::removed({2})}));
  live(source, 2, stored(1, {}));
  test::TokenList prompt = test::count_from(100, kBlock);
  const auto rest = test::count_from(200, kBlock + 1);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  const auto tokens = test::narrow(prompt);
  Request r;
  r.token_ids = tokens;
  EXPECT_EQ(router.peek(r, now).total_cached().value, kBlock);
}

}  // namespace
}  // namespace warmroute
