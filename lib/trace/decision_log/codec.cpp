#include "trace/decision_log/codec.hpp"

#include <algorithm>
#include <array>

#include "trace/decision_log/bytes.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute::trace {
namespace {

constexpr std::string_view kMagic = "WRDECLOG";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kCheckBytes = 4;

using decisions::put;
using decisions::put_fixed;
using decisions::put_hashes;
using decisions::put_id;
using decisions::put_real;
using decisions::put_signed;
using decisions::put_text;
using decisions::Source;

std::uint32_t check_of(std::string_view content, std::uint64_t log_number, std::uint64_t record_number) noexcept {
  const std::uint64_t seed = log_number ^ (record_number + 1) * 0x9E37'79B9'7F4A'7C15U;
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(content.data(), content.size(), seed));
}

void put_spec(std::string& out, const ReplicaSpec& s) {
  put_text(out, s.name);
  put(out, s.dp_rank);
  put_text(out, s.pool);
  put_text(out, s.ring_id);
  put(out, static_cast<std::uint64_t>(s.role));
  put_real(out, s.weight);
  put_real(out, s.slow_start_weight);
  put(out, s.any_adapter ? 1 : 0);
  put(out, s.adapters.size());
  for (const std::string& adapter : s.adapters) put_text(out, adapter);
  for (const std::int64_t rate :
       {s.rates.floor_ns, s.rates.token_ps, s.rates.pair_ps, s.rates.context_ps, s.rates.overhead_ns, s.capacity_tokens,
        s.slots.ram_tokens, s.slow_start.value, s.drain_until.value})
    put_signed(out, rate);
  put(out, static_cast<std::uint64_t>(s.cache_kind));
  put(out, s.slots.count);
  put(out, s.slots.unified ? 1 : 0);
  put(out, static_cast<std::uint64_t>(s.health));
}

void read_spec(Source& in, ReplicaSpec& s) {
  in.text(s.name);
  s.dp_rank = in.small();
  in.text(s.pool);
  in.text(s.ring_id);
  s.role = static_cast<Role>(in.below(3));
  s.weight = in.real();
  s.slow_start_weight = in.real();
  s.any_adapter = in.flag();
  s.adapters.resize(in.count(1));
  for (std::string& adapter : s.adapters) in.text(adapter);
  for (std::int64_t* rate :
       {&s.rates.floor_ns, &s.rates.token_ps, &s.rates.pair_ps, &s.rates.context_ps, &s.rates.overhead_ns,
        &s.capacity_tokens, &s.slots.ram_tokens, &s.slow_start.value, &s.drain_until.value})
    *rate = in.whole();
  s.cache_kind = static_cast<CacheKind>(in.below(2));
  s.slots.count = in.small();
  s.slots.unified = in.flag();
  s.health = static_cast<Health>(in.below(3));
}

void put_request(std::string& out, const LoggedRequest& r) {
  for (const std::string* text : {&r.model, &r.adapter, &r.session, &r.tenant}) put_text(out, *text);
  put(out, static_cast<std::uint64_t>(r.block_kind));
  for (const std::int64_t number :
       {r.input_tokens, r.prompt_bytes, r.max_output_tokens, std::int64_t{r.priority}, r.deadline.value})
    put_signed(out, number);
  put(out, r.class_id);
  put(out, (r.stream ? 1u : 0u) | (r.exact_pool ? 2u : 0u));
  put_id(out, r.pinned);
  put(out, r.excluded.size());
  for (const ReplicaId id : r.excluded) put_id(out, id);
}

void read_request(Source& in, LoggedRequest& r) {
  for (std::string* text : {&r.model, &r.adapter, &r.session, &r.tenant}) in.text(*text);
  r.block_kind = static_cast<BlockKind>(in.below(2));
  for (std::int64_t* number : {&r.input_tokens, &r.prompt_bytes, &r.max_output_tokens}) *number = in.whole();
  r.priority = static_cast<std::int32_t>(in.whole());
  r.deadline = Nanos{in.whole()};
  r.class_id = in.small();
  const std::uint64_t flags = in.below(4);
  r.stream = (flags & 1) != 0;
  r.exact_pool = (flags & 2) != 0;
  r.pinned = in.id();
  r.excluded.resize(in.count(2));
  for (ReplicaId& id : r.excluded) id = in.id();
}

void put_decision(std::string& out, const Decision& d) {
  put(out, static_cast<std::uint64_t>(d.verdict));
  put(out, static_cast<std::uint64_t>(d.reason));
  put_id(out, d.replica);
  put_id(out, d.prefill_replica);
  put(out, d.fallback_count);
  for (const ReplicaId id : d.fallbacks()) put_id(out, id);
  put(out, static_cast<std::uint64_t>(d.ticket));
  put_signed(out, d.input_tokens.value);
  for (const Tokens cached : d.cached_tokens) put_signed(out, cached.value);
  for (const std::int64_t number :
       {d.best_cached_tokens.value, d.expected_wait.value, d.expected_prefill.value, d.retry_after.value})
    put_signed(out, number);
  put(out, d.class_id);
  put_signed(out, d.priority);
  put(out, static_cast<std::uint64_t>(d.split));
  put_signed(out, d.decode_cached_tokens.value);
  put_signed(out, d.expected_transfer.value);
}

void read_decision(Source& in, Decision& d) {
  d = {};
  d.verdict = static_cast<Verdict>(in.below(9));
  d.reason = static_cast<Reason>(in.below(kReasonCount));
  d.replica = in.id();
  d.prefill_replica = in.id();
  d.fallback_count = static_cast<std::uint8_t>(in.below(kMaxFallbacks + 1));
  for (std::size_t i = 0; i < d.fallback_count; ++i) d.fallback_ids[i] = in.id();
  d.ticket = Ticket{in.number()};
  d.input_tokens = Tokens{in.whole()};
  for (Tokens& cached : d.cached_tokens) cached = Tokens{in.tokens()};
  d.best_cached_tokens = Tokens{in.whole()};
  d.expected_wait = Nanos{in.whole()};
  d.expected_prefill = Nanos{in.whole()};
  d.retry_after = Nanos{in.whole()};
  d.class_id = in.small();
  d.priority = static_cast<std::int32_t>(in.whole());
  d.split = static_cast<Split>(in.below(kSplitCount));
  d.decode_cached_tokens = Tokens{in.tokens()};
  d.expected_transfer = Nanos{in.whole()};
}

// What the call was given, in one place for both directions: `Put` writes, `Take` reads.
void put_call(std::string& out, const DecisionRecord& r) {
  switch (r.call) {
    case DecisionCall::set_policy:
      put_text(out, r.text);
      put_fixed(out, r.policy_digest);
      break;
    case DecisionCall::add_replica:
    case DecisionCall::update_replica: put_spec(out, r.spec); break;
    case DecisionCall::set_health: put(out, static_cast<std::uint64_t>(r.health)); break;
    case DecisionCall::signal:
      put(out, static_cast<std::uint64_t>(r.signal));
      put_real(out, r.value);
      break;
    case DecisionCall::prefix_counters:
      put_signed(out, r.counters.queries);
      put_signed(out, r.counters.hits);
      put(out, (r.counters.in_blocks ? 1u : 0u) | (r.counters.shared ? 2u : 0u));
      break;
    case DecisionCall::blocks_stored:
      put(out, static_cast<std::uint64_t>(r.tier));
      put(out, r.parent ? 1 : 0);
      if (r.parent) put_fixed(out, static_cast<std::uint64_t>(*r.parent));
      put_hashes(out, r.ids);
      put_hashes(out, r.blocks);
      break;
    case DecisionCall::blocks_removed:
    case DecisionCall::blocks_also_on:
      put(out, static_cast<std::uint64_t>(r.tier));
      put_hashes(out, r.ids);
      put(out, r.count);
      break;
    case DecisionCall::drain: put_signed(out, r.until.value); break;
    case DecisionCall::clear_shared_store: put_text(out, r.text); break;
    case DecisionCall::route:
      put_request(out, r.request);
      put_hashes(out, r.blocks);
      put_decision(out, r.decision);
      break;
    case DecisionCall::finish:
      for (const std::int64_t count : {r.usage.input_tokens, r.usage.cached_tokens, r.usage.output_tokens})
        put_signed(out, count);
      break;
    case DecisionCall::fail: put(out, static_cast<std::uint64_t>(r.outcome)); break;
    case DecisionCall::restore_cached:
      put_text(out, r.text);
      put_signed(out, r.away.value);
      put(out, r.count);
      break;
    case DecisionCall::restore_learned:
    case DecisionCall::peer_loads:
      put_text(out, r.text);
      put(out, r.count);
      break;
    case DecisionCall::peer_placed:
      put_request(out, r.request);
      put_hashes(out, r.blocks);
      break;
    case DecisionCall::remove_replica:
    case DecisionCall::clear_cache:
    case DecisionCall::first_token:
    case DecisionCall::transfer_done:
    case DecisionCall::advance: break;
  }
}

void read_call(Source& in, DecisionRecord& r) {
  switch (r.call) {
    case DecisionCall::set_policy:
      in.text(r.text);
      r.policy_digest = in.fixed();
      break;
    case DecisionCall::add_replica:
    case DecisionCall::update_replica: read_spec(in, r.spec); break;
    case DecisionCall::set_health: r.health = static_cast<Health>(in.below(3)); break;
    case DecisionCall::signal:
      r.signal = static_cast<Signal>(in.below(kSignalCount));
      r.value = in.real();
      break;
    case DecisionCall::prefix_counters: {
      r.counters.queries = in.whole();
      r.counters.hits = in.whole();
      const std::uint64_t flags = in.below(4);
      r.counters.in_blocks = (flags & 1) != 0;
      r.counters.shared = (flags & 2) != 0;
      break;
    }
    case DecisionCall::blocks_stored:
      r.tier = static_cast<Tier>(in.below(kAllTierCount));
      if (in.flag()) r.parent = EngineHash{in.fixed()};
      in.hashes(r.ids);
      in.hashes(r.blocks);
      break;
    case DecisionCall::blocks_removed:
    case DecisionCall::blocks_also_on:
      r.tier = static_cast<Tier>(in.below(kAllTierCount));
      in.hashes(r.ids);
      r.count = in.number();
      break;
    case DecisionCall::drain: r.until = Nanos{in.whole()}; break;
    case DecisionCall::clear_shared_store: in.text(r.text); break;
    case DecisionCall::route:
      read_request(in, r.request);
      in.hashes(r.blocks);
      read_decision(in, r.decision);
      break;
    case DecisionCall::finish:
      for (std::int64_t* count : {&r.usage.input_tokens, &r.usage.cached_tokens, &r.usage.output_tokens})
        *count = in.whole();
      break;
    case DecisionCall::fail: r.outcome = static_cast<Outcome>(in.below(kOutcomeCount)); break;
    case DecisionCall::restore_cached:
      in.text(r.text);
      r.away = Nanos{in.whole()};
      r.count = in.number();
      break;
    case DecisionCall::restore_learned:
    case DecisionCall::peer_loads:
      in.text(r.text);
      r.count = in.number();
      break;
    case DecisionCall::peer_placed:
      read_request(in, r.request);
      in.hashes(r.blocks);
      break;
    case DecisionCall::remove_replica:
    case DecisionCall::clear_cache:
    case DecisionCall::first_token:
    case DecisionCall::transfer_done:
    case DecisionCall::advance: break;
  }
}

bool has_replica(DecisionCall call) noexcept {
  return call >= DecisionCall::add_replica && call != DecisionCall::clear_shared_store && call != DecisionCall::route &&
         call != DecisionCall::advance && call != DecisionCall::first_token && call != DecisionCall::finish &&
         call != DecisionCall::fail && call != DecisionCall::transfer_done && call != DecisionCall::restore_learned &&
         call != DecisionCall::peer_loads;
}
bool has_ticket(DecisionCall call) noexcept {
  return call == DecisionCall::first_token || call == DecisionCall::transfer_done || call == DecisionCall::finish ||
         call == DecisionCall::fail;
}

}  // namespace

std::string_view decision_call_name(DecisionCall call) noexcept {
  constexpr std::array<std::string_view, kDecisionCallCount> kNames{"",
                                                                    "set_policy",
                                                                    "add_replica",
                                                                    "remove_replica",
                                                                    "set_health",
                                                                    "update_replica",
                                                                    "clear_cache",
                                                                    "signal",
                                                                    "prefix_counters",
                                                                    "blocks_stored",
                                                                    "blocks_removed",
                                                                    "blocks_also_on",
                                                                    "clear_shared_store",
                                                                    "route",
                                                                    "first_token",
                                                                    "finish",
                                                                    "fail",
                                                                    "advance",
                                                                    "restore_cached",
                                                                    "drain",
                                                                    "transfer_done",
                                                                    "restore_learned",
                                                                    "peer_loads",
                                                                    "peer_placed"};
  const auto i = static_cast<std::size_t>(call);
  return i < kNames.size() ? kNames[i] : "unknown";
}

bool same_decision(const Decision& a, const Decision& b) noexcept {
  return a.verdict == b.verdict && a.reason == b.reason && a.replica == b.replica &&
         a.prefill_replica == b.prefill_replica && a.fallback_count == b.fallback_count &&
         std::equal(a.fallbacks().begin(), a.fallbacks().end(), b.fallbacks().begin()) && a.ticket == b.ticket &&
         a.input_tokens == b.input_tokens && a.cached_tokens == b.cached_tokens &&
         a.best_cached_tokens == b.best_cached_tokens && a.expected_wait == b.expected_wait &&
         a.expected_prefill == b.expected_prefill && a.retry_after == b.retry_after && a.class_id == b.class_id &&
         a.priority == b.priority && a.split == b.split && a.decode_cached_tokens == b.decode_cached_tokens &&
         a.expected_transfer == b.expected_transfer;
}

void append_head(const DecisionLogHead& head, std::string& out) {
  const std::size_t begin = out.size();
  out += kMagic;
  put_fixed(out, kVersion, 4);
  put_fixed(out, head.log_number);
  const RouterOptions& o = head.options;
  for (const std::uint64_t size :
       {std::uint64_t{o.max_replicas}, std::uint64_t{o.max_tickets}, std::uint64_t{o.index_max_bytes},
        std::uint64_t{o.session_entries}, std::uint64_t{o.shared_prefix_entries}, std::uint64_t{o.placement_queue},
        std::uint64_t{o.max_path_blocks}})
    put_fixed(out, size);
  put_fixed(out, check_of(std::string_view(out).substr(begin), 0, 0), kCheckBytes);
}

Result<std::size_t> read_head(std::string_view bytes, DecisionLogHead& head) {
  constexpr std::size_t kSize = 8 + 4 + 8 + 7 * 8 + kCheckBytes;
  const std::string_view start = bytes.substr(0, kMagic.size());
  if (start != kMagic.substr(0, start.size())) return Error{Code::malformed, "this is no decision log", 0};
  Source in(bytes.substr(std::min(bytes.size(), kMagic.size())));
  if (in.left() >= 4) {
    if (const std::uint64_t version = in.fixed(4); version != kVersion)
      return Error{Code::unsupported,
                   "a decision log of version " + std::to_string(version) + "; this library reads version 1", 8};
  }
  if (bytes.size() < kSize) return std::size_t{0};
  head.log_number = in.fixed();
  RouterOptions& o = head.options;
  o.max_replicas = static_cast<std::uint32_t>(in.fixed());
  o.max_tickets = static_cast<std::uint32_t>(in.fixed());
  for (std::size_t* size :
       {&o.index_max_bytes, &o.session_entries, &o.shared_prefix_entries, &o.placement_queue, &o.max_path_blocks})
    *size = static_cast<std::size_t>(in.fixed());
  if (in.fixed(kCheckBytes) != check_of(bytes.substr(0, kSize - kCheckBytes), 0, 0))
    return Error{Code::malformed, "the head of the decision log is damaged", 0};
  return kSize;
}

void append_content(const DecisionRecord& r, Nanos before, std::string& out) {
  put(out, static_cast<std::uint64_t>(r.call));
  put_signed(out, static_cast<std::int64_t>(static_cast<std::uint64_t>(r.now.value) -
                                            static_cast<std::uint64_t>(before.value)));
  if (has_replica(r.call)) put_id(out, r.replica);
  if (has_ticket(r.call)) {
    put(out, static_cast<std::uint64_t>(r.ticket));
    put(out, r.done ? 1 : 0);
  } else {
    put(out, static_cast<std::uint64_t>(r.code));
  }
  put_call(out, r);
}

Status read_content(std::string_view content, Nanos before, DecisionRecord& r) {
  Source in(content);
  r.call = static_cast<DecisionCall>(in.below(kDecisionCallCount));
  r.now = Nanos{
      static_cast<std::int64_t>(static_cast<std::uint64_t>(before.value) + static_cast<std::uint64_t>(in.whole()))};
  r.replica = has_replica(r.call) ? in.id() : kNoReplica;
  r.ticket = kNoTicket;
  r.done = false;
  r.code = Code::ok;
  r.parent.reset();
  r.ids.clear();
  r.blocks.clear();
  r.count = 0;
  if (has_ticket(r.call)) {
    r.ticket = Ticket{in.number()};
    r.done = in.flag();
  } else {
    r.code = static_cast<Code>(static_cast<std::int32_t>(in.below(1'000)));
  }
  if (static_cast<std::uint64_t>(r.call) != 0) read_call(in, r);
  if (!in.fine() || in.left() != 0 || static_cast<std::uint64_t>(r.call) == 0)
    return Error{Code::malformed, "a record of the decision log is whole but cannot be read", kNoOffset};
  return {};
}

void append_framed(std::string_view content, std::uint64_t log_number, std::uint64_t record_number, std::string& out) {
  put(out, content.size());
  put_fixed(out, check_of(content, log_number, record_number), kCheckBytes);
  out += content;
}

FrameView read_frame(std::string_view bytes, std::uint64_t log_number, std::uint64_t record_number) noexcept {
  FrameView frame;
  std::size_t at = 0;
  for (int shift = 0;; shift += 7, ++at) {
    if (at == bytes.size()) return frame;
    const auto byte = static_cast<unsigned char>(bytes[at]);
    frame.length |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
    if (shift >= 35) {
      frame.state = Frame::damaged;
      return frame;
    }
  }
  ++at;
  frame.bytes = at + kCheckBytes + static_cast<std::size_t>(frame.length);
  if (frame.length == 0) {
    frame.state = Frame::damaged;
    return frame;
  }
  if (bytes.size() < frame.bytes) return frame;
  frame.content = bytes.substr(at + kCheckBytes, static_cast<std::size_t>(frame.length));
  Source check(bytes.substr(at, kCheckBytes));
  const bool right = check.fixed(kCheckBytes) == check_of(frame.content, log_number, record_number);
  frame.state = right ? Frame::whole : Frame::damaged;
  return frame;
}

}  // namespace warmroute::trace
