// The operations of generate.cpp through the C++ interface: reads them from stdin, prints a line for each.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "line.h"
#include "usage_cpp.hpp"
#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/warmroute.hpp"

namespace {

using namespace warmroute;  // NOLINT(google-build-using-namespace)

class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    std::free(hashes_.data);
    std::free(tokens_.data);
  }
  void run(char* line) {
    const std::string_view op = line_field(&line);
    if (op == "policy") policy(line);
    else if (op == "add") add(line);
    else if (op == "remove" || op == "clear" || op == "health" || op == "signal") change(op, line);
    else if (op == "stored") stored(line);
    else if (op == "removed") removed(line);
    else if (op == "engine") engine(line);
    else if (op == "page") page(line);
    else if (op == "route" || op == "peek") route(op == "route", line);
    else if (op == "routeblocks") route_blocks(line);
    else if (op == "body") body(line);
    else if (op == "first" || op == "finish" || op == "fail") release(op, line);
    else if (op == "advance") {
      router_.advance(Nanos{line_int(&line)});
      std::puts("advance");
    } else if (op == "home") home(line);
    else if (op == "stats") stats();
    else if (!usage_.run(op, line)) line_die("unknown operation");
  }

 private:
  void policy(const char* json) {
    auto read = policy_from_json(json);
    const Status done = read ? router_.set_policy(*read) : Status(read.error());
    if (done) std::puts("policy ok");
    else std::printf("policy %d\n", static_cast<int>(done.code()));
  }
  void add(char* line) {
    ReplicaSpec spec;
    spec.name = line_field(&line);
    spec.pool = line_field(&line);
    spec.weight = line_double(&line);
    spec.capacity_tokens = line_int(&line);
    const auto id = router_.add_replica(spec, Nanos{line_int(&line)});
    if (!id) {
      std::printf("add error %d\n", static_cast<int>(id.code()));
      return;
    }
    members_.push_back({spec.name, static_cast<std::uint32_t>(ids_.size()), spec.weight});
    ids_.push_back(*id);
    std::printf("add %u %u\n", id->slot, id->generation);
  }
  ReplicaId id(char** line) { return ids_.at(static_cast<std::size_t>(line_int(line))); }

  void change(std::string_view op, char* line) {
    const ReplicaId which = id(&line);
    Status done;
    if (op == "remove") done = router_.remove_replica(which, Nanos{line_int(&line)});
    else if (op == "clear") done = router_.clear_cache(which, Nanos{line_int(&line)});
    else if (op == "health") {
      const auto state = static_cast<Health>(line_int(&line));
      done = router_.set_health(which, state, "test", Nanos{line_int(&line)});
    } else {
      const auto kind = static_cast<Signal>(line_int(&line));
      const double value = line_double(&line);
      done = router_.signal(which, kind, value, Nanos{line_int(&line)});
    }
    std::printf("%.*s %d\n", static_cast<int>(op.size()), op.data(), static_cast<int>(done.code()));
  }
  static std::span<const EngineHash> names(const line_u64s& list) {
    return {reinterpret_cast<const EngineHash*>(list.data), list.size};
  }
  void stored(char* line) {
    const ReplicaId which = id(&line);
    StoredBlocks s;
    s.tier = static_cast<Tier>(line_int(&line));
    line_hex_list(&line, &hashes_);
    if (hashes_.size != 0) s.parent = EngineHash{hashes_.data[0]};
    line_hex_list(&line, &hashes_);
    line_runs(&line, &tokens_);
    s.ids = names(hashes_);
    s.token_ids = {tokens_.data, tokens_.size};
    std::printf("stored %d\n", static_cast<int>(router_.blocks_stored(which, s, Nanos{line_int(&line)}).code()));
  }
  void removed(char* line) {
    const ReplicaId which = id(&line);
    const auto tier = static_cast<Tier>(line_int(&line));
    line_hex_list(&line, &hashes_);
    const auto done = router_.blocks_removed(which, tier, names(hashes_), Nanos{line_int(&line)});
    if (done) std::printf("removed %zu\n", *done);
    else std::printf("removed error %d\n", static_cast<int>(done.code()));
  }
  void engine(char* line) {
    const auto n = static_cast<std::size_t>(line_int(&line));
    if (sources_.size() <= n) sources_.resize(n + 1);
    if (!sources_[n]) {
      KvSourceOptions options;
      options.events = kv_event_options(router_.policy());
      sources_[n].emplace(router_, ids_.at(n), options);
    }
    KvSource& source = *sources_[n];
    KvMessage message;
    message.seq = static_cast<std::uint64_t>(line_int(&line));
    std::size_t size = 0;
    const char* bytes = line_bytes(&line, &size);
    message.payload = {bytes, size};
    source.live(message, Nanos{line_int(&line)});
    const KvSourceStatus s = source.status();
    const KvCounters& c = source.counters();
    std::printf("engine %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                static_cast<int>(s.state), s.next, c.blocks_stored, c.blocks_removed, s.orphan_blocks, s.gaps,
                s.restarts, s.bad_messages);
  }
  void page(char* line) {
    const RankReplica whose{id(&line), std::nullopt, {}};
    const Nanos now{line_int(&line)};
    std::replace(line, line + std::strlen(line), '|', '\n');
    const auto read = metrics_.parse(line);
    if (!read) {
      std::printf("page error %d\n", static_cast<int>(read.code()));
      return;
    }
    const AppliedReading done = apply_engine_reading(router_, *read, {&whose, 1}, now);
    std::printf("page %zu %zu %zu\n", done.signals, done.refused, done.unmatched_ranks);
  }
  void print(const Decision& d) {
    std::string fallbacks;
    for (const ReplicaId f : d.fallbacks()) {
      fallbacks += (fallbacks.empty() ? "" : ",") + std::to_string(f.slot) + "." + std::to_string(f.generation);
    }
    std::printf("route %d %d %u %u %s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                " %" PRId64 " %" PRId64 "\n",
                static_cast<int>(d.verdict), static_cast<int>(d.reason), d.replica.slot, d.replica.generation,
                fallbacks.empty() ? "-" : fallbacks.c_str(), static_cast<std::uint64_t>(d.ticket), d.input_tokens.value,
                d.cached_tokens[0].value, d.cached_tokens[1].value, d.cached_tokens[2].value, d.cached_tokens[3].value,
                d.best_cached_tokens.value, d.expected_wait.value, d.expected_prefill.value);
  }
  void ask(const Request& request, Nanos now) {
    const Decision d = router_.route(request, now);
    tickets_.push_back(d.ticket);
    print(d);
  }
  void route(bool book, char* line) {
    Request r;
    r.model = line_field(&line);
    r.session = line_field(&line);
    r.tenant = line_field(&line);
    r.max_output_tokens = line_int(&line);
    line_runs(&line, &tokens_);
    r.token_ids = {tokens_.data, tokens_.size};
    const Nanos now{line_int(&line)};
    if (book) ask(r, now);
    else print(router_.peek(r, now));
  }
  void route_blocks(char* line) {
    Request r;
    r.model = line_field(&line);
    r.block_kind = static_cast<BlockKind>(line_int(&line));
    r.input_tokens = line_int(&line);
    line_hex_list(&line, &hashes_);
    r.blocks = {reinterpret_cast<const BlockHash*>(hashes_.data), hashes_.size};
    ask(r, Nanos{line_int(&line)});
  }
  void body(char* line) {
    const auto api = static_cast<BodyApi>(line_int(&line));
    const Nanos now{line_int(&line)};
    const auto parsed = parser_.parse(api, line, body_options(router_.policy()));
    if (parsed) {
      ask(parsed->request(), now);
      return;
    }
    tickets_.push_back(kNoTicket);
    std::printf("body error %d %" PRIu64 "\n", static_cast<int>(parsed.code()), parsed.error().offset);
  }
  void release(std::string_view op, char* line) {
    const Ticket ticket = tickets_.at(static_cast<std::size_t>(line_int(&line)));
    bool done = false;
    if (op == "first") {
      done = router_.first_token(ticket, Nanos{line_int(&line)});
    } else if (op == "finish") {
      UsageCounts usage;
      usage.cached_tokens = line_int(&line);
      usage.output_tokens = line_int(&line);
      done = router_.finish(ticket, usage, Nanos{line_int(&line)});
    } else {
      const auto outcome = static_cast<Outcome>(line_int(&line));
      done = router_.fail(ticket, outcome, Nanos{line_int(&line)});
    }
    std::printf("%.*s %d\n", static_cast<int>(op.size()), op.data(), done);
  }
  void home(char* line) {
    if (ring_.size() != members_.size()) ring_ = HashRing::build(members_).value();
    line_hex_list(&line, &hashes_);
    std::printf("home %u\n", ring_.home(hashes_.data[0]));
  }
  template <class Counts>
  static std::string joined(const Counts& counts) {
    std::string text;
    for (const auto n : counts) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
  }
  void stats() {
    const RouterStatistics s = router_.statistics();
    std::printf("stats %s %s %s %" PRIu64 " %" PRIu64 "\n", joined(s.verdicts).c_str(), joined(s.reasons).c_str(),
                joined(s.outcomes).c_str(), s.late_calls, s.tickets_in_flight);
  }

  Router router_;
  RequestBodyParser parser_;
  std::vector<ReplicaId> ids_;
  std::vector<std::optional<KvSource>> sources_;
  EngineMetricsParser metrics_;
  std::vector<RingMember> members_;
  HashRing ring_;
  std::vector<Ticket> tickets_;
  line_u64s hashes_{};
  line_u32s tokens_{};
  surfaces::UsageRunner usage_;
};

}  // namespace

int main() {
  Runner runner;
  std::vector<char> line(LINE_MAX_BYTES);
  while (std::fgets(line.data(), static_cast<int>(line.size()), stdin) != nullptr) {
    line[std::strcspn(line.data(), "\n")] = '\0';
    runner.run(line.data());
  }
  return 0;
}
