// peers_ours CONTENDER WORKLOAD time|bytes: the workloads of rust/ on this library, with the same measuring and the same output.
#include <memory>

#include "../prefix_workloads.hpp"
#include "feed.hpp"
#include "measure.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::peers {
namespace {

using bench::Query;

// ---------------------------------------------------------------- the index

constexpr std::size_t kMemberships = 524'288;
constexpr PrefixIndexOptions kOptions{.max_replicas = 1'008, .max_bytes = std::size_t{8} << 30};

/// Completion-correct: ends the program unless look-ups see exactly what was stored.
void check(const PrefixIndex& index, const Chain& chain, std::size_t w, std::size_t blocks) {
  PrefixMatch match;
  index.match(chain.blocks, match);
  const auto held = match.device();
  if ((w < held.size() ? held[w] : 0) != blocks)
    fail("replica " + str(w) + " of a path of " + str(chain.size()) + " blocks");
}
void memory(const char* workload, const std::string& args, std::int64_t bytes, std::size_t memberships) {
  value(workload, args, by_name ? "bytes_with_engine_map" : "bytes_without_engine_map",
        static_cast<double>(bytes) / static_cast<double>(memberships), "B");
}

struct Ingest {
  Ingest(std::size_t w, std::size_t c, std::size_t first_slot = 0) : replicas(w), chains(c), first(first_slot) {
    for (std::size_t i = 0; i < w; ++i) {
      for (std::size_t k = 0; k < c; ++k) paths.push_back(chain(bench::ingest_family(i, c, k), kChainBlocks));
    }
  }
  [[nodiscard]] const Chain& path(std::size_t w, std::size_t c) const { return paths[w * chains + c]; }
  /// returns: nanoseconds of CPU.
  double store_all(PrefixIndex& index, std::size_t event_blocks) const {
    Feed feed(index);
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = 0; at < kChainBlocks; at += event_blocks) {
        for (std::size_t w = 0; w < replicas; ++w) feed.add(event(true, first + w, path(w, c), at, at + event_blocks));
      }
    }
    return feed.finish();
  }
  double remove_all(PrefixIndex& index, std::size_t event_blocks) const {
    Feed feed(index);
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = kChainBlocks; at != 0; at -= event_blocks) {
        for (std::size_t w = 0; w < replicas; ++w) feed.add(event(false, first + w, path(w, c), at - event_blocks, at));
      }
    }
    return feed.finish();
  }
  void check_all(const PrefixIndex& index, std::size_t blocks) const {
    for (const std::size_t w : {std::size_t{0}, replicas - 1}) {
      for (std::size_t c = 0; c < chains; ++c) check(index, path(w, c), w, blocks);
    }
  }
  std::size_t replicas, chains, first;
  std::vector<Chain> paths;
};

void ingest_time() {
  for (const std::size_t replicas : {8U, 64U}) {
    const Ingest work(replicas, kMemberships / kChainBlocks / replicas);
    for (const std::size_t event_blocks : {1U, 16U, 64U}) {
      PrefixIndex index(kOptions);
      const double store_ns = work.store_all(index, event_blocks);
      work.check_all(index, kChainBlocks);
      const double remove_ns = work.remove_all(index, event_blocks);
      work.check_all(index, 0);
      const double again_ns = work.store_all(index, event_blocks);  // what removing put off is paid here
      work.check_all(index, kChainBlocks);
      const std::string args = " W=" + str(replicas) + " ev=" + str(event_blocks);
      value("INGEST", "op=store" + args, "cpu_per_block", store_ns / kMemberships, "ns");
      value("INGEST", "op=remove" + args, "cpu_per_block", remove_ns / kMemberships, "ns");
      value("INGEST", "op=store-again" + args, "cpu_per_block", again_ns / kMemberships, "ns");
      value("INGEST", "op=turnover" + args, "cpu_per_block", (remove_ns + again_ns) / kMemberships, "ns");
    }
    digest("INGEST", "W=" + str(replicas), digest_of(work.paths));
  }
}

void ingest_bytes() {
  for (const std::size_t replicas : {1U, 8U, 64U}) {
    const Ingest work(replicas, kMemberships / kChainBlocks / replicas);
    const auto before = live_bytes();
    PrefixIndex index(kOptions);
    work.store_all(index, 64);
    memory("INGEST", "W=" + str(replicas), live_bytes() - before, kMemberships);
    work.remove_all(index, 64);
    index.advance();
    value("INGEST", "W=" + str(replicas), "bytes_after_remove", static_cast<double>(live_bytes() - before), "B");
  }
}

void time_look_ups(const char* workload, const std::string& args, const PrefixIndex& index,
                   std::span<const Chain> prompts) {
  PrefixMatch match;
  for (int round = 0; round < 3; ++round) {
    for (const auto& prompt : prompts) index.match(prompt.blocks, match);
  }
  Stopwatch watch;
  watch.run([&](std::size_t i) {
    index.match(prompts[i % prompts.size()].blocks, match);
    keep(match);
  });
  percentiles(workload, args, watch);
  const double mean = Stopwatch::mean(prompts.size(), [&](std::size_t i) {
    index.match(prompts[i].blocks, match);
    keep(match);
  });
  value(workload, args, "mean", mean, "ns");
}

/// returns: the leading blocks of a prompt that a replica holds.
std::size_t depth_of(Query kind, std::size_t w, std::size_t replicas, std::size_t length) {
  return kind == Query::miss ? 0 : kind == Query::full ? length : length * (w + 1) / replicas;
}

void store_branches(PrefixIndex& index, std::size_t i, const Chain& prompt, std::size_t replicas) {
  for (std::size_t turn = 0, at = 64; at < prompt.size(); ++turn, at += 64) {
    const std::size_t w = replicas - 1 - turn % std::max<std::size_t>(replicas / 2, 1);
    if (depth_of(Query::branchy, w, replicas, prompt.size()) < at) continue;
    Chain branch = prompt;
    branch.cut(at);
    for (std::size_t b = 0; b < 8; ++b) branch.push_back(local(9'000'000 + i * 1'000 + turn, b));
    store(index, w, branch, at, branch.size());
  }
}

void query_one(const char* name, Query kind, std::size_t replicas, std::size_t length, const Ingest& ballast) {
  PrefixIndex index(kOptions);
  ballast.store_all(index, 64);
  std::vector<Chain> prompts;
  for (std::size_t i = 0; i < (length >= 4096 ? 16 : length >= 625 ? 64 : 256); ++i) {
    prompts.push_back(chain(5'000'000 + i, length));
    for (std::size_t w = 0; w < replicas; ++w) {
      const std::size_t end = depth_of(kind, w, replicas, length);
      for (std::size_t at = 0; at < end; at += 64) store(index, w, prompts[i], at, std::min(at + 64, end));
    }
    if (kind == Query::branchy) store_branches(index, i, prompts[i], replicas);
  }
  std::uint64_t depths = 0;
  for (std::size_t w = 0; w < replicas; ++w) {
    for (const auto& prompt : prompts) check(index, prompt, w, depth_of(kind, w, replicas, length));
    depths ^= mix(depth_of(kind, w, replicas, length));
  }
  const std::string args = "kind="_s + name + " W=" + str(replicas) + " L=" + str(length);
  time_look_ups("QUERY", args, index, prompts);
  digest("QUERY", args, digest_of(prompts) ^ depths);
}

void query() {
  const Ingest ballast(8, 64, 1'000);
  for (const std::size_t replicas : {8U, 64U}) {
    for (const std::size_t length : {64U, 625U, 4096U}) {
      query_one("full", Query::full, replicas, length, ballast);
      query_one("stagger", Query::stagger, replicas, length, ballast);
      query_one("branchy", Query::branchy, replicas, length, ballast);
      query_one("miss", Query::miss, replicas, length, ballast);
    }
  }
}

constexpr std::size_t kLevels = 10;
constexpr std::size_t kTreeBlocks = 64 + 8 * ((2U << kLevels) - 2);

Chain tree_path(std::uint64_t forest, std::size_t leaf) {
  Chain path = chain(forest << 20, 64);
  for (std::size_t level = 1; level <= kLevels; ++level) {
    for (std::size_t b = 0; b < 8; ++b)
      path.push_back(local(forest << 20 | 1ULL << level | leaf >> (kLevels - level), 64 + level * 8 + b));
  }
  return path;
}

void tree(bool bytes) {
  for (const std::size_t replicas : {1U, 8U, 64U}) {
    const std::string args = "W=" + str(replicas);
    const auto before = live_bytes();
    PrefixIndex index(kOptions);
    for (std::size_t forest = 0; forest < 64 / replicas; ++forest) {
      for (std::size_t leaf = 0; leaf < (1U << kLevels); ++leaf) {
        const Chain path = tree_path(forest, leaf);
        for (std::size_t w = 0; w < replicas; ++w) store(index, w, path, 0, path.size());
      }
    }
    if (bytes) {
      memory("TREE", args, live_bytes() - before, kTreeBlocks * 64);
      continue;
    }
    std::vector<Chain> prompts;
    for (std::size_t n = 0; n < 64; ++n) prompts.push_back(tree_path(0, mix(n) % (1U << kLevels)));
    for (const auto& prompt : prompts) {
      for (std::size_t w = 0; w < replicas; ++w) check(index, prompt, w, prompt.size());
    }
    time_look_ups("TREE", args, index, prompts);
    digest("TREE", args, digest_of(prompts));
  }
}

void churn(bool bytes) {
  constexpr std::uint64_t kRounds = 40'000;
  constexpr std::uint64_t kBatch = 8;  // rounds per reading of the clock
  const Chain base = chain(1, kChainBlocks);
  const auto before = live_bytes();
  PrefixIndex index(kOptions);
  store(index, 0, base, 0, base.size());
  check(index, base, 0, kChainBlocks);
  const auto base_bytes = live_bytes() - before;
  if (!bytes) time_look_ups("CHURN", "base look-up first", index, std::span(&base, 1));
  double ns = 0;
  for (std::uint64_t round = 0; round < kRounds; round += kBatch) {
    std::vector<Chain> paths(kBatch, base);
    std::vector<Event> events;
    for (std::uint64_t k = 0; k < kBatch; ++k) {
      paths[k].cut(16 + 37 * (round + k) % 1000);
      for (std::size_t b = 0; b < 64; ++b) paths[k].push_back(local(7'000'000 + round + k, b));
      for (const bool stores : {true, false}) events.push_back(event(stores, 1, paths[k], 0, paths[k].size()));
    }
    const double begin = thread_cpu_ns();
    for (const Event& e : events) apply(index, e);
    ns += thread_cpu_ns() - begin;
  }
  check(index, base, 0, kChainBlocks);
  check(index, base, 1, 0);
  if (bytes) {
    value("CHURN", "", "bytes_base", static_cast<double>(base_bytes), "B");
    value("CHURN", "", "bytes_growth", static_cast<double>(live_bytes() - before - base_bytes), "B");
    index.advance();
    value("CHURN", "", "bytes_growth_after_upkeep", static_cast<double>(live_bytes() - before - base_bytes), "B");
  } else {
    value("CHURN", "store + remove", "cpu_per_round", ns / kRounds, "ns");
    time_look_ups("CHURN", "base look-up after", index, std::span(&base, 1));
    index.advance();
    time_look_ups("CHURN", "base look-up after upkeep", index, std::span(&base, 1));
  }
}

// ---------------------------------------------------------------- text and hashes

void text(bool bytes) {
  constexpr std::size_t kReplicas = 8;
  const std::uint64_t seed = block_seed({.text = true});
  for (const auto& shape : {std::pair<std::size_t, std::size_t>{4096, 1'000}, {1024, 10'000}, {256, 40'000}}) {
    const std::size_t count = shape.first, length = shape.second;
    const std::string args = "T=" + str(kReplicas) + " n=" + str(count) + " chars=" + str(length);
    std::vector<std::string> prompts;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::string& prompt = prompts.emplace_back(length, ' ');
      for (std::size_t k = 0; k < length; ++k) {
        prompt[k] = static_cast<char>('0' + mix((k < length / 2 ? i % 64 : 1'000 + i) << 32 | k) % 64);
        sum = mix(sum ^ static_cast<unsigned char>(prompt[k]));
      }
    }
    Path blocks(length / kTextBlockBytes);
    const auto hashed = [&](std::size_t i) {
      return std::span(blocks).first(hash_text_blocks(prompts[i], seed, blocks));
    };
    Stopwatch insert;
    const auto before = live_bytes();
    PrefixIndex index(kOptions);
    for (std::size_t i = 0; i < count; ++i)
      insert.once(
          [&] { static_cast<void>(index.store(replica((i / 64 + i % 64) % kReplicas), Tier::device, hashed(i))); });
    if (bytes) {
      value("TEXT", args, "bytes_per_char",
            static_cast<double>(live_bytes() - before) / static_cast<double>(count * length), "B");
      continue;
    }
    percentiles("TEXT", "op=insert " + args, insert);
    PrefixMatch match;
    for (std::size_t i = 0; i < count; ++i) {
      index.match(hashed(i), match);
      if (match.best() != blocks.size()) fail("a text is not found again");
    }
    Stopwatch watch;
    watch.run([&](std::size_t i) {
      index.match(hashed(i % count), match);
      keep(match);
    });
    percentiles("TEXT", "op=match " + args, watch);
    digest("TEXT", args, sum);
  }
}

void hash() {
  constexpr std::size_t kTokens = 10'000, kBlocks = kTokens / 16;
  std::vector<std::uint32_t> tokens(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) tokens[i] = static_cast<std::uint32_t>(i * 7919 % 151'936);
  Path blocks(kBlocks);
  std::vector<SequenceHash> chain(kBlocks);
  Stopwatch plain, chained;
  plain.run([&](std::size_t) {
    hash_token_blocks(tokens, 16, kDynamoHashSeed, blocks);
    keep(blocks);
  });
  percentiles("HASH", "blocks of 10000 tokens", plain);
  chained.run([&](std::size_t) {
    hash_token_blocks_chained(tokens, 16, kDynamoHashSeed, blocks, chain);
    keep(chain);
  });
  percentiles("HASH", "blocks and chain of 10000 tokens", chained);
  digest("HASH", "chain", to_u64(chain.back()));
}

// ---------------------------------------------------------------- decisions

constexpr std::size_t kPathBlocks = 625, kPrompts = 64;

/// As rust/src/selection.rs: 10^6 blocks of others, the prompts held by one replica each, four requests in flight per replica.
struct Fleet {
  explicit Fleet(std::size_t replicas) {
    RouterOptions options;
    options.max_replicas = static_cast<std::uint32_t>(replicas);
    router = std::make_unique<Router>(options);
    Policy policy;
    policy.capacity_tokens = 1'000'000'000;
    if (!router->set_policy(policy)) fail("the policy was refused");
    for (std::size_t i = 0; i < replicas; ++i) ids.push_back(*router->add_replica({.name = "replica-" + str(i)}, now));
    for (std::size_t c = 0; c < 1'000; ++c) serve(chain(c, 1'000), ids[c % replicas]);
    for (std::size_t i = 0; i < kPrompts; ++i) {
      prompts.push_back(chain(5'000'000 + i, kPathBlocks));
      serve(prompts.back(), ids[(1'000 + i) % replicas]);
    }
    for (std::size_t i = 0; i < replicas * 4; ++i) {
      Request r;
      r.input_tokens = static_cast<std::int64_t>(1'000 + mix(i) % 8'000);
      r.pinned = ids[i % replicas];
      router->route(r, tick());
    }
  }
  void serve(const Chain& path, ReplicaId id) {
    Request r;
    r.blocks = path.blocks;
    r.pinned = id;
    const Decision d = router->route(r, tick());
    router->first_token(d.ticket, tick());
    router->finish(d.ticket, {}, tick());
  }
  Nanos tick() { return now += Nanos{1'000}; }

  Nanos now{1'000'000};
  std::unique_ptr<Router> router;
  std::vector<ReplicaId> ids;
  std::vector<Chain> prompts;
};

void select() {
  for (const std::size_t replicas : {8U, 64U, 1'024U}) {
    Fleet fleet(replicas);
    Request plain;
    plain.input_tokens = kPathBlocks * 16;
    Stopwatch alone, whole;
    alone.run([&](std::size_t) { keep(fleet.router->peek(plain, fleet.now)); });
    percentiles("SELECT", "op=select W=" + str(replicas), alone);
    whole.run([&](std::size_t i) {
      Request r;
      r.blocks = fleet.prompts[i % kPrompts].blocks;
      keep(fleet.router->peek(r, fleet.now));
    });
    percentiles("SELECT", "op=decide W=" + str(replicas) + " L=" + str(kPathBlocks), whole);
    digest("SELECT", "W=" + str(replicas), digest_of(fleet.prompts));
  }
}

void run(const std::string& workload, bool bytes) {
  if (workload == "INGEST") {
    bytes ? ingest_bytes() : ingest_time();
  } else if (workload == "QUERY" && !bytes) {
    query();
  } else if (workload == "TREE") {
    tree(bytes);
  } else if (workload == "CHURN") {
    churn(bytes);
  } else if (workload == "TEXT") {
    text(bytes);
  } else if (workload == "HASH" && !bytes) {
    hash();
  } else if (workload == "SELECT" && !bytes) {
    select();
  } else {
    fail("no such workload");
  }
}

}  // namespace
}  // namespace warmroute::peers

int main(int argc, char** argv) {
  const std::string name = argc == 4 ? argv[1] : "";
  const std::string mode = argc == 4 ? argv[3] : "";
  if ((name != "warmroute" && name != "warmroute-path") || (mode != "time" && mode != "bytes")) {
    std::fprintf(stderr,
                 "usage: peers_ours warmroute|warmroute-path INGEST|QUERY|TREE|CHURN|TEXT|HASH|SELECT time|bytes\n");
    return 2;
  }
  counting = mode == "bytes";
  warmroute::peers::by_name = name == "warmroute";
  ::contender = argv[1];
  warmroute::peers::run(argv[2], counting);
}
