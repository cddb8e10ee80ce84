// A decision log for people and scripts: one object a record, only the members that its call has.
#include <cmath>
#include <cstdio>
#include <string>

#include "warmroute/trace/decision_log.hpp"

namespace warmroute::trace {
namespace {

/// Appends members to an object.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  ~JsonObject() { out_ += '}'; }

  void number(const char* name, std::int64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void count(const char* name, std::uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void known(const char* name, std::int64_t value) {
    if (value != kUnknown) number(name, value);
  }
  void real(const char* name, double value) {
    key(name);
    char text[32];
    std::snprintf(text, sizeof text, std::isfinite(value) ? "%.17g" : "null", value);
    out_ += text;
  }
  void flag(const char* name, bool value) { raw(name, value ? "true" : "false"); }
  void raw(const char* name, std::string_view json) {
    key(name);
    out_ += json;
  }
  void text(const char* name, std::string_view value) {
    key(name);
    out_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", byte);
        out_ += escape;
        continue;
      }
      if (c == '"' || c == '\\') out_ += '\\';
      out_ += c;
    }
    out_ += '"';
  }
  void some_text(const char* name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void id(const char* name, ReplicaId id) {
    if (id.valid()) raw(name, "\"" + std::to_string(id.slot) + "." + std::to_string(id.generation) + "\"");
  }
  void hash(const char* name, std::uint64_t value) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "\"%016llx\"", static_cast<unsigned long long>(value));
    raw(name, digits);
  }
  template <class Hashes>
  void hashes(const char* name, const Hashes& values, bool all) {
    if (!all) return count(name, values.size());
    key(name);
    out_ += '[';
    bool first = true;
    for (const auto value : values) {
      char digits[24];
      std::snprintf(digits, sizeof digits, "%s\"%016llx\"", first ? "" : ",",
                    static_cast<unsigned long long>(static_cast<std::uint64_t>(value)));
      out_ += digits;
      first = false;
    }
    out_ += ']';
  }
  std::string& open(const char* name) {
    key(name);
    return out_;
  }

 private:
  void key(const char* name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_.append("\"").append(name).append("\":");
  }
  std::string& out_;
  bool first_ = true;
};

const char* tier_label(Tier tier) noexcept {
  switch (tier) {
    case Tier::device: return "device";
    case Tier::host: return "host";
    case Tier::disk: return "disk";
    case Tier::shared: return "shared";
  }
  return "unknown";
}

const char* signal_label(Signal signal) noexcept {
  constexpr const char* kNames[] = {"running",     "waiting",        "kv_usage",    "block_tokens",
                                    "block_count", "prefix_queries", "prefix_hits", "waiting_tokens"};
  const auto i = static_cast<std::size_t>(signal);
  return i < kSignalCount ? kNames[i] : "unknown";
}

std::string on_one_line(std::string_view json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '\n') {
      out += json[i];
      continue;
    }
    while (i + 1 < json.size() && json[i + 1] == ' ') ++i;
  }
  return out;
}

void write_request(JsonObject& to, const DecisionRecord& r, bool blocks) {
  const LoggedRequest& q = r.request;
  to.some_text("model", q.model);
  to.some_text("adapter", q.adapter);
  to.some_text("session", q.session);
  to.some_text("tenant", q.tenant);
  to.text("block_kind", q.block_kind == BlockKind::tokens ? "tokens" : "text");
  to.hashes("blocks", r.blocks, blocks);
  to.known("input_tokens", q.input_tokens);
  to.known("prompt_bytes", q.prompt_bytes);
  to.known("max_output_tokens", q.max_output_tokens);
  if (q.class_id != 0) to.count("class", q.class_id);
  if (q.priority != 0) to.number("priority", q.priority);
  if (q.deadline.value != 0) to.number("deadline_ns", q.deadline.value);
  if (q.stream) to.flag("stream", true);
  if (q.exact_pool) to.flag("exact_pool", true);
  to.id("pinned", q.pinned);
  if (!q.excluded.empty()) to.count("excluded", q.excluded.size());
}

void write_decision(JsonObject& to, const Decision& d) {
  JsonObject out(to.open("decision"));
  out.text("verdict", verdict_name(d.verdict));
  if (!d.routed()) return;
  out.text("reason", reason_name(d.reason));
  out.id("replica", d.replica);
  if (d.is_pair()) out.id("prefill_replica", d.prefill_replica);
  out.hash("ticket", static_cast<std::uint64_t>(d.ticket));
  out.number("input_tokens", d.input_tokens.value);
  out.number("cached_tokens", d.total_cached().value);
  out.number("best_cached_tokens", d.best_cached_tokens.value);
  out.number("expected_wait_ns", d.expected_wait.value);
  out.number("expected_prefill_ns", d.expected_prefill.value);
  if (d.fallback_count == 0) return;
  std::string ids = "[";
  for (const ReplicaId id : d.fallbacks())
    ids += (ids.size() > 1 ? ",\"" : "\"") + std::to_string(id.slot) + "." + std::to_string(id.generation) + "\"";
  out.raw("fallbacks", ids + "]");
}

void write_spec(JsonObject& to, const ReplicaSpec& s) {
  to.text("name", s.name);
  if (s.dp_rank != 0) to.count("dp_rank", s.dp_rank);
  to.some_text("pool", s.pool);
  to.some_text("ring_id", s.ring_id);
  to.text("role", role_name(s.role));
  to.real("weight", s.weight);
  to.number("capacity_tokens", s.capacity_tokens);
  if (s.slow_start.value != 0) to.number("slow_start_ns", s.slow_start.value);
  to.text("cache_kind", cache_kind_name(s.cache_kind));
  JsonObject rates(to.open("rates"));
  rates.number("floor_ns", s.rates.floor_ns);
  rates.number("token_ps", s.rates.token_ps);
  rates.number("pair_ps", s.rates.pair_ps);
  rates.number("context_ps", s.rates.context_ps);
  rates.number("overhead_ns", s.rates.overhead_ns);
}

void write_call(JsonObject& to, const DecisionRecord& r, bool blocks) {
  switch (r.call) {
    case DecisionCall::set_policy:
      to.hash("digest", r.policy_digest);
      if (r.code == Code::ok) to.raw("policy", on_one_line(r.text));  // one that was refused may hold what JSON cannot
      break;
    case DecisionCall::add_replica:
    case DecisionCall::update_replica: write_spec(to, r.spec); break;
    case DecisionCall::set_health: to.text("health", health_name(r.health)); break;
    case DecisionCall::signal:
      to.text("signal", signal_label(r.signal));
      to.real("value", r.value);
      break;
    case DecisionCall::prefix_counters:
      to.number("queries", r.counters.queries);
      to.number("hits", r.counters.hits);
      break;
    case DecisionCall::blocks_stored:
      to.text("tier", tier_label(r.tier));
      if (r.parent) to.hash("parent", static_cast<std::uint64_t>(*r.parent));
      to.hashes("ids", r.ids, blocks);
      to.hashes("blocks", r.blocks, blocks);
      break;
    case DecisionCall::blocks_removed:
    case DecisionCall::blocks_also_on:
      to.text("tier", tier_label(r.tier));
      to.hashes("ids", r.ids, blocks);
      to.count("known", r.count);
      break;
    case DecisionCall::drain: to.number("until_ns", r.until.value); break;
    case DecisionCall::clear_shared_store: to.text("pool", r.text); break;
    case DecisionCall::route:
      write_request(to, r, blocks);
      write_decision(to, r.decision);
      break;
    case DecisionCall::finish:
      to.known("input_tokens", r.usage.input_tokens);
      to.known("cached_tokens", r.usage.cached_tokens);
      to.known("output_tokens", r.usage.output_tokens);
      break;
    case DecisionCall::fail: to.text("outcome", outcome_name(r.outcome)); break;
    case DecisionCall::restore_cached:
      to.number("away_ns", r.away.value);
      to.count("added", r.count);
      break;
    case DecisionCall::restore_learned: to.count("added", r.count); break;
    case DecisionCall::peer_loads:
      to.count("peer", r.count);
      to.text("loads", r.text);
      break;
    case DecisionCall::peer_placed: write_request(to, r, blocks); break;
    case DecisionCall::remove_replica:
    case DecisionCall::clear_cache:
    case DecisionCall::first_token:
    case DecisionCall::transfer_done:
    case DecisionCall::advance: break;
  }
}

}  // namespace

void append_json_line(const DecisionRecord& r, std::string& out, bool blocks) {
  JsonObject to(out);
  to.count("record", r.number);
  to.number("now_ns", r.now.value);
  to.text("call", decision_call_name(r.call));
  to.id("replica", r.replica);
  if (r.ticket != kNoTicket) {
    to.hash("ticket", static_cast<std::uint64_t>(r.ticket));
    if (!r.done) to.flag("done", false);
  }
  if (r.code != Code::ok) to.text("error", code_name(r.code));
  write_call(to, r, blocks);
}

}  // namespace warmroute::trace
