// The other gateways, see peers.hpp.
#include "gateway/peers.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/text.hpp"
#include "gateway/gauges.hpp"
#include "gateway/upstream.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace http = examples::http;
using examples::error_code;
using examples::into;

namespace {

// Longer than clocks of machines that are looked after differ. A mark that is too old is not believed, which costs its class, no more.
constexpr std::int64_t kMarkLives_s = 300;

std::int64_t unix_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

/// returns: what all members know, without the line's end that editors put behind it.
Result<std::string> read_secret(const PeersConfig& config) {
  std::string secret;
  if (!config.secret_env.empty()) {
    const char* value = std::getenv(config.secret_env.c_str());
    secret = value == nullptr ? "" : value;
  } else {
    std::ifstream file(config.secret_file, std::ios::binary);
    if (!file) return Error{Code::io, "'" + config.secret_file + "' cannot be read", kNoOffset};
    secret.assign(std::istreambuf_iterator<char>(file), {});
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() >= 16) return secret;
  return Error{Code::invalid_argument, "the gateways' secret is shorter than 16 bytes", kNoOffset};
}

/// returns: the part of a mark that begins with `name=`.
std::string_view part_of(std::string_view mark, std::string_view name) {
  for (std::string_view rest = mark; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
  }
  return {};
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::unique_ptr<Peers>> Peers::open(const Config& config, std::size_t first_number, asio::io_context& prober) {
  std::vector<std::string> names;
  for (const auto& member : config.peers.members) names.push_back(member.name);
  auto ring = GatewayRing::build(names, config.peers.self);
  if (!ring) return ring.error();
  auto whole = GatewayRing::build(names, config.peers.self);
  if (!whole) return whole.error();
  auto secret = read_secret(config.peers);
  if (!secret) return secret.error();
  std::unique_ptr<Peers> peers(new Peers(config, std::move(*ring), std::move(*whole), std::move(*secret), prober));
  for (const auto& member : config.peers.members) {
    auto upstream = std::make_unique<Upstream>();
    upstream->number = first_number + peers->members_.size();
    upstream->name = member.name;
    upstream->host = member.host;
    upstream->port = member.port;
    peers->members_.push_back(std::move(upstream));
  }
  return peers;
}

Peers::Peers(const Config& config, GatewayRing ring, GatewayRing whole, std::string secret, asio::io_context& prober)
    : config_(config),
      ring_(std::move(ring)),
      whole_(std::move(whole)),
      secret_(std::move(secret)),
      prober_(prober),
      own_cookie_(config.peers.cookie.empty() ? "" : cookie_value(config.peers.self)) {}

void Peers::start() {
  for (auto& peer : members_) {
    if (peer->name != self()) asio::co_spawn(prober_, watch(*peer), asio::detached);
  }
}

// ---------------------------------------------------------------- marks

/// returns: HMAC-SHA-256 in hexadecimal.
std::string Peers::mac(std::string_view text) const {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), data, text.size(), bytes, &size) == nullptr)
    return {};
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

// A mark on a message of the gateways' own covers its path and body; one that was on a request is none for a message, nor the other way round.
std::string Peers::write_mark(const Upstream& peer, std::optional<std::uint32_t> class_id,
                              const std::string& message) const {
  std::string mark = "from=" + self() + " to=" + peer.name + " at=" + std::to_string(unix_seconds());
  if (class_id) mark += " class=" + std::to_string(*class_id);
  if (!message.empty()) mark += " body=" + mac("body " + message);
  const std::string under = mac(mark);
  return mark + " mac=" + under;
}

/// returns: what a request's mark says, if a member wrote it, for this gateway, just now; else nothing.
std::string_view Peers::believed(const ClientRequest& request) const {
  const std::string_view text = view(request[their(kMarkHeader)]);
  const auto end = text.rfind(" mac=");
  if (request.count(their(kMarkHeader)) != 1 || end == std::string_view::npos) return {};
  const std::string_view said = text.substr(0, end), given = text.substr(end + 5);
  const std::string due = mac(said);
  if (due.empty() || given.size() != due.size() || CRYPTO_memcmp(given.data(), due.data(), due.size()) != 0) return {};
  const auto at = number_of<std::int64_t>(part_of(said, "at"));
  const std::int64_t age = at ? unix_seconds() - *at : kMarkLives_s + 1;
  return part_of(said, "to") == self() && age <= kMarkLives_s && age >= -kMarkLives_s ? said : std::string_view{};
}

Mark Peers::read_mark(const ClientRequest& request) const {
  Mark mark;
  mark.there = request.count(their(kMarkHeader)) != 0;
  if (!mark.there) return mark;
  const std::string_view said = believed(request);
  mark.believed = !said.empty() && part_of(said, "body").empty();
  if (mark.believed) mark.class_id = number_of<std::uint32_t>(part_of(said, "class"));
  return mark;
}

std::optional<std::size_t> Peers::sender(const ClientRequest& request) const {
  const std::string_view said = believed(request);
  if (said.empty()) return std::nullopt;
  const std::string message = std::string(view(request.target())) + " " + request.body();
  if (part_of(said, "body") != mac("body " + message)) return std::nullopt;
  const std::string_view from = part_of(said, "from");
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i]->name == from && from != self()) return i;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- whose a request is

namespace {

/// What there is to tell requests apart by. Without it all would be one gateway's.
bool has_key(const Request& request) {
  return !request.session.empty() || !request.blocks.empty() || !request.token_ids.empty();
}

/// Whose key it is, the gateway that forwards does not know.
Request of_nobody(Request request) {
  request.tenant = {};
  return request;
}

}  // namespace

const Upstream* Peers::owner(const Request& request, const Policy& policy) {
  if (!has_key(request)) return nullptr;
  const std::uint64_t key = ring_.key(of_nobody(request), policy);
  const auto owner = ring_.owner(key, false);
  if (down_.load(std::memory_order_relaxed) != 0 && whole_.owner(key, false).index != owner.index)
    counters_.rehomed.fetch_add(1, std::memory_order_relaxed);
  return owner.local ? nullptr : members_[owner.index].get();
}

void Peers::received(const Mark& mark, const Request& request, const Policy& policy) {
  auto& which = mark.believed ? counters_.received : counters_.marks_refused;
  which.fetch_add(1, std::memory_order_relaxed);
  if (!request.tenant.empty() && policy.isolation != Isolation::none)
    return;  // its blocks are others than they were there
  if (mark.believed && has_key(request) && !ring_.owner(ring_.key(of_nobody(request), policy), false).local)
    counters_.loops_refused.fetch_add(1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------- a cookie for balancers in front

/// Opaque: who sees it learns no name, and the members all know each other's.
std::string Peers::cookie_value(std::string_view name) const {
  return mac("cookie " + std::string(name)).substr(0, 16);
}

/// The ring decides whose a request is; the cookie only lets a balancer find that gateway at once the next time.
std::string Peers::cookie_for(const ClientRequest& request) const {
  if (own_cookie_.empty()) return {};
  const std::string pair = config_.peers.cookie + "=" + own_cookie_;
  for (std::string_view rest = view(request[http::field::cookie]); !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (one.substr(std::min(one.find_first_not_of(' '), one.size())) == pair) return {};
  }
  return pair + "; Path=/; HttpOnly; SameSite=Lax";
}

// ---------------------------------------------------------------- health

void Peers::report(const Upstream& which, const Report& report) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Upstream& peer = *members_[i];
    if (&peer != &which) continue;
    const bool good = report.outcome == Outcome::finished;
    const bool bad = report.outcome == Outcome::connect_error || report.outcome == Outcome::replica_error ||
                     report.outcome == Outcome::timeout;
    peer.failures = good ? 0 : peer.failures + (bad ? 1 : 0);
    if (good && std::exchange(peer.down, false)) {
      down_ -= 1;
      peer.reason.clear();
      ring_.set_up(static_cast<std::uint32_t>(i), true);
      std::fprintf(stderr, "gateway %s is up again\n", peer.name.c_str());
    } else if (bad && !peer.down && (report.refused || peer.failures >= config_.failures_to_down)) {
      peer.down = true;
      down_ += 1;
      peer.reason = report.reason;
      ring_.set_up(static_cast<std::uint32_t>(i), false);
      std::fprintf(stderr, "gateway %s is down: %s\n", peer.name.c_str(), report.reason.c_str());
    }
  }
}

bool Peers::up(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return !members_[number]->down;
}

Awaitable<void> Peers::watch(Upstream& peer) {
  asio::steady_timer timer(prober_);
  for (;;) {
    const Report result = co_await probe(peer);
    report(peer, result);
    error_code ignored;
    timer.expires_after(config_.probe_interval);
    co_await timer.async_wait(into(ignored));
  }
}

/// One that ends, or whose model servers are all gone, or that is not who it should be, owns nothing: at once, since it says so itself.
Awaitable<Report> Peers::probe(const Upstream& peer) {
  Connection connection(prober_.get_executor());
  const auto deadline = std::chrono::steady_clock::now() + config_.connect_timeout;
  error_code error = co_await connection.connect(peer.host, peer.port, deadline);
  Report result{Outcome::connect_error, error == asio::error::connection_refused, Nanos{0}, error.message()};
  if (error) co_return result;
  http::request<http::empty_body> request{http::verb::get, "/health", 11};
  request.set(http::field::host, peer.host);
  request.set(http::field::connection, "close");
  http::response<http::string_body> response;
  connection.stream.expires_at(deadline);
  co_await http::async_write(connection.stream, request, into(error));
  if (!error) co_await http::async_read(connection.stream, connection.buffer, response, into(error));
  result.outcome = Outcome::replica_error;
  result.reason = error.message();
  if (error) co_return result;
  const std::string& body = response.body();
  result.refused = true;
  if (response.result_int() != 200) {
    result.reason = "its /health answers " + std::to_string(response.result_int());
  } else if (body.find("\"gateway\":" + examples::json_quoted(peer.name)) == std::string::npos) {
    result.reason = "somebody else answers at its address";
  } else if (body.find("\"replicas_up\":0,") != std::string::npos) {
    result.reason = "it reaches no replica";
  } else {
    result = {};
  }
  co_return result;
}

// ---------------------------------------------------------------- for operators

void Peers::append_prometheus(std::string& out) const {
  const auto count = [&](std::string_view name, std::string_view help, const PeerCounters::Count& value) {
    single(out, name, "counter", help, value.load());
  };
  count("peer_forwarded_total", "Requests that another gateway answered, being its own.", counters_.forwarded);
  count("peer_received_total", "Requests that another gateway forwarded to this one.", counters_.received);
  count("peer_marks_refused_total", "Requests with a mark that is no member's; they were served here.",
        counters_.marks_refused);
  count("peer_loops_refused_total",
        "Received requests that are another's by the ring of here: configurations differ. They were served here.",
        counters_.loops_refused);
  count("peer_rehomed_total", "Requests whose gateway was down: the next one's on the ring.", counters_.rehomed);
  labelled(out, "peer_fallbacks_total", "cause", "Requests that could not be forwarded and were served here.",
           counters_.fell_back, kFallBacks);
  family(out, "peer_up", "gauge", "1 when requests are forwarded there.");
  const std::lock_guard lock(mutex_);
  for (const auto& peer : members_) {
    if (peer->name != self()) sample(out, "peer_up", "peer", peer->name, peer->down ? 0 : 1);
  }
}

std::string Peers::to_json() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& peer : members_) {
    out.append(out.empty() ? "[" : ",\n ").append("{\"name\":" + examples::json_quoted(peer->name));
    out.append(",\"address\":" + examples::json_quoted(peer->host + ":" + std::to_string(peer->port)));
    out.append(",\"self\":").append(peer->name == self() ? "true" : "false");
    out.append(",\"up\":").append(peer->down ? "false" : "true");
    out.append(",\"reason\":" + examples::json_quoted(peer->reason));
    if (!own_cookie_.empty()) out.append(",\"cookie\":" + examples::json_quoted(cookie_value(peer->name)));
    out.append("}");
  }
  return out + "]\n";
}

}  // namespace warmroute::gateway
