// Telling peers what is in flight here and what went where, and taking what they tell. See peer_shares.hpp.
#include "gateway/peer_shares.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "gateway/gauges.hpp"
#include "gateway/heads.hpp"
#include "gateway/ticket_guard.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/peer_load.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace http = examples::http;
using examples::error_code;
using examples::into;

namespace {

constexpr std::size_t kHashDigits = 16;

/// Takes a word and the blank behind it. returns: the word; empty: there is none.
std::string_view take_word(std::string_view& line) {
  const auto end = line.find(' ');
  if (end == std::string_view::npos) return {};
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end + 1);
  return word;
}

template <class Number>
bool read_whole(std::string_view word, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out, base);
  return error == std::errc{} && end == word.data() + word.size();
}

bool read_placement(std::string_view line, Placement& out) {
  std::uint32_t kind = 0;
  if (!read_whole(take_word(line), out.dp_rank) || !read_whole(take_word(line), kind) || kind > 1) return false;
  out.kind = static_cast<BlockKind>(kind);
  const std::string_view hashes = take_word(line);
  if (hashes.empty() || hashes.size() % kHashDigits != 0 || line.empty()) return false;
  for (std::size_t at = 0; at < hashes.size(); at += kHashDigits) {
    std::uint64_t hash = 0;
    if (!read_whole(hashes.substr(at, kHashDigits), hash, 16)) return false;
    out.blocks.push_back(BlockHash{hash});
  }
  out.replica = line;
  return true;
}

/// returns: the hashes that the router looks prompts up by; token ids are hashed here, since those are the prompt itself.
std::vector<BlockHash> blocks_of(const Request& request, const Policy& policy) {
  constexpr std::size_t most = PeerShares::kMostOfPrompt;
  if (!request.blocks.empty() || request.token_ids.empty()) {
    const auto first = request.blocks.first(std::min(request.blocks.size(), most));
    return {first.begin(), first.end()};
  }
  const std::size_t count = std::min(request.token_ids.size() / policy.block_size, most);
  std::vector<BlockHash> blocks(count);
  const HashSpace space{policy.hash_seed, request.adapter, request.cache_salt,
                        isolation_key(policy.isolation, request.tenant)};
  hash_token_blocks(request.token_ids.first(count * policy.block_size), policy.block_size, block_seed(space), blocks);
  return blocks;
}

}  // namespace

void append_placement(const Placement& placement, std::string& out) {
  out.append(std::to_string(placement.dp_rank)).push_back(' ');
  out.append(std::to_string(static_cast<unsigned>(placement.kind))).push_back(' ');
  for (const BlockHash block : placement.blocks) {
    for (int shift = 60; shift >= 0; shift -= 4) out.push_back("0123456789abcdef"[(to_u64(block) >> shift) & 15]);
  }
  out.append(" ").append(placement.replica).push_back('\n');
}

Result<std::vector<Placement>> read_placements(std::string_view text) {
  std::vector<Placement> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos || !read_placement(text.substr(at, end - at), out.emplace_back()))
      return Error{Code::invalid_argument, "placements of a peer: a line is rank, kind, hashes and a name", at};
    at = end + 1;
  }
  return out;
}

PeerShares::PeerShares(Router& router, const Fleet& fleet, const Peers& peers, const Config& config,
                       asio::io_context& upkeep)
    : router_(router),
      fleet_(fleet),
      peers_(peers),
      config_(config),
      upkeep_(upkeep),
      tells_placements_(config.peers.share_placements && config.peers.share.count() != 0),
      said_(peers.size()) {}

void PeerShares::start() {
  if (config_.peers.share.count() == 0) return;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_.member(i).name != peers_.self()) asio::co_spawn(upkeep_, tell(i), asio::detached);
  }
}

// ---------------------------------------------------------------- telling

void PeerShares::note(const Decision& decision, const Request& request) {
  Placement placement;
  placement.kind = request.blocks.empty() ? BlockKind::tokens : request.block_kind;
  placement.blocks = blocks_of(request, router_.policy());
  if (placement.blocks.empty()) return;
  for (const ReplicaId id : {decision.replica, decision.prefill_replica}) {
    const Upstream* upstream = id.valid() ? fleet_.find(id) : nullptr;
    if (upstream == nullptr || upstream->name.find('\n') != std::string::npos) continue;
    placement.replica = upstream->name;
    placement.dp_rank = config_.replicas[upstream->number].spec.dp_rank;
    const std::lock_guard lock(mutex_);
    waiting_blocks_ += placement.blocks.size();
    placements_.push_back(placement);
    while (waiting_blocks_ > kMostBlocks) {
      waiting_blocks_ -= placements_.front().blocks.size();
      placements_.pop_front();
      first_placement_ += 1;
    }
  }
}

/// The next ones for whoever was told of the first `told`, as many as a message holds.
std::string PeerShares::next_placements(std::uint64_t& told) {
  std::string out;
  const std::lock_guard lock(mutex_);
  if (told < first_placement_) {
    placements_dropped_.fetch_add(first_placement_ - told, std::memory_order_relaxed);
    told = first_placement_;
  }
  for (; told < first_placement_ + placements_.size(); ++told) {
    const Placement& next = placements_[told - first_placement_];
    if (out.size() + next.blocks.size() * kHashDigits + next.replica.size() + 32 > kMostBytes) break;
    append_placement(next, out);
    placements_sent_.fetch_add(1, std::memory_order_relaxed);
  }
  return out;
}

// The interval begins when the last message is through: a slow peer gets fewer of them, never a queue of old ones.
Awaitable<void> PeerShares::tell(std::size_t number) {
  const Upstream& peer = peers_.member(number);
  std::unique_ptr<Connection> connection;
  std::uint64_t told = 0;
  asio::steady_timer timer(upkeep_);
  for (;;) {
    error_code ignored;
    timer.expires_after(config_.peers.share);
    co_await timer.async_wait(into(ignored));
    if (!peers_.up(number)) {
      connection.reset();
      continue;
    }
    const bool sent = co_await send_all(peer, connection, told);
    (sent ? sent_ : failed_).fetch_add(1, std::memory_order_relaxed);
    if (!sent) connection.reset();
  }
}

/// Over the peer's one connection, which is opened when there is none. What fails is made good by the next message; placements are not
/// told again: a peer that lacks some believes a little less.
Awaitable<bool> PeerShares::send_all(const Upstream& peer, std::unique_ptr<Connection>& connection,
                                     std::uint64_t& told) {
  const auto deadline = std::chrono::steady_clock::now() + config_.connect_timeout;
  if (connection && !connection->idle_and_open()) connection.reset();
  if (!connection) {
    connection = std::make_unique<Connection>(upkeep_.get_executor());
    if (co_await connection->connect(peer.host, peer.port, deadline)) co_return false;
  }
  std::vector<PeerLoad> loads;
  router_.loads(loads, now());
  std::string text;
  append_peer_loads(loads, text);
  if (!co_await send(peer, *connection, kLoadsPath, std::move(text), deadline)) co_return false;
  text = tells_placements_ ? next_placements(told) : std::string();
  if (text.empty()) co_return true;
  co_return co_await send(peer, *connection, kPlacementsPath, std::move(text), deadline);
}

/// returns: whether it was taken, and the connection can be used on.
Awaitable<bool> PeerShares::send(const Upstream& peer, Connection& connection, std::string_view path, std::string body,
                                 TimePoint deadline) {
  http::request<http::string_body> request{http::verb::post, their(path), 11, std::move(body)};
  request.set(http::field::host, peer.host + ":" + std::to_string(peer.port));
  request.set(http::field::content_type, "text/plain");
  request.set(their(kMarkHeader), peers_.write_mark(peer, std::nullopt, std::string(path) + " " + request.body()));
  request.prepare_payload();
  http::response_parser<http::string_body> answer;
  answer.body_limit(4'096);
  connection.stream.expires_at(deadline);
  error_code error;
  co_await http::async_write(connection.stream, request, into(error));
  if (!error) co_await http::async_read(connection.stream, connection.buffer, answer, into(error));
  connection.stream.expires_never();
  co_return !error && answer.get().result_int() == 200 && answer.keep_alive();
}

// ---------------------------------------------------------------- taking

unsigned PeerShares::refuse(ShareFault why, unsigned status) {
  refused_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  return status;
}

unsigned PeerShares::take(const ClientRequest& request) {
  if (request.method() != http::verb::post) return 405;
  if (request.body().size() > kMostBytes)
    return refuse(ShareFault::too_large, 413);  // before anything is reckoned over it
  const auto peer = peers_.sender(request);
  if (!peer) return refuse(ShareFault::stranger, 403);
  return view(request.target()) == kLoadsPath ? take_loads(*peer, request.body()) : take_placements(request.body());
}

unsigned PeerShares::take_loads(std::size_t peer, std::string_view body) {
  const auto loads = read_peer_loads(body);
  if (!loads) return refuse(ShareFault::malformed, 400);
  Said said{now(), 0, 0};
  for (const PeerLoad& load : *loads) {
    if (load.sound()) said.requests += std::min<std::int64_t>(load.requests, 100'000);
  }
  if (!router_.peer_loads(static_cast<std::uint32_t>(peer), *loads, said.at)) return refuse(ShareFault::malformed, 400);
  const std::lock_guard lock(mutex_);
  said.messages = said_[peer].messages + 1;
  said_[peer] = said;
  return 200;
}

unsigned PeerShares::take_placements(std::string_view body) {
  const auto placements = read_placements(body);
  if (!placements) return refuse(ShareFault::malformed, 400);
  for (const Placement& placement : *placements) {
    Request request;
    request.blocks = placement.blocks;
    request.block_kind = placement.kind;
    const auto id = router_.find_replica(placement.replica, placement.dp_rank);
    const bool known = id && router_.peer_placed(*id, request, now());
    (known ? placements_taken_ : placements_unknown_).fetch_add(1, std::memory_order_relaxed);
  }
  return 200;
}

// ---------------------------------------------------------------- for operators

void PeerShares::append_prometheus(std::string& out) const {
  single(out, "peer_loads_sent_total", "counter", "Messages with what is in flight here that a peer took.",
         sent_.load());
  single(out, "peer_loads_failed_total", "counter", "Of such messages, those that a peer that is up did not take.",
         failed_.load());
  labelled(out, "peer_loads_refused_total", "cause",
           "Messages to this gateway that were not taken: no member's, no such text, too long.", refused_,
           kShareFaults);
  if (tells_placements_) {
    single(out, "peer_placements_sent_total", "counter", "Prompts that peers were told of, each peer counted.",
           placements_sent_.load());
    single(out, "peer_placements_dropped_total", "counter", "Prompts that a peer was not told of in time.",
           placements_dropped_.load());
  }
  single(out, "peer_placements_taken_total", "counter", "Prompts that peers told of.", placements_taken_.load());
  single(out, "peer_placements_unknown_total", "counter", "Of those, at replicas that are not here, or keep slots.",
         placements_unknown_.load());
  const auto said = [&] {
    const std::lock_guard lock(mutex_);
    return said_;
  }();
  const Nanos at = now(), max_age = router_.policy().signals_max_age;
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    family(out, name, type, help);
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i].at.value != 0) sample(out, name, "peer", peers_.member(i).name, value(said[i]));
    }
  };
  each("peer_loads_taken_total", "counter", "Messages of that peer.", [](const Said& s) { return s.messages; });
  each("peer_loads_age_seconds", "gauge", "Since its last message; absent before the first one.",
       [&](const Said& s) { return static_cast<double>((at - s.at).value) / 1e9; });
  each("peer_loads_requests", "gauge", "What it has in flight, as decisions count it: 0 when it fell silent.",
       [&](const Said& s) { return (at - s.at).value > max_age.value ? 0 : s.requests; });
}

}  // namespace warmroute::gateway
