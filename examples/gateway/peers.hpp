/// The other gateways: whose a request is, how they are, and the mark that a forwarded request carries.
/// Invariants: a request with a mark, whoever wrote it, is served where it arrives and is never forwarded: however members are
/// configured, there is no loop, and who forges a mark gains nothing but to be served here. A mark is believed only with the
/// members' common secret under it, for this gateway, and fresh; then it says, too, of which class the first gateway found the caller
/// to be. The gateway that serves a request checks its key, reserves, and books it: the one that forwards does nothing of it.
/// A member is down when a connection is refused or after `failures_to_down` failures in a row, of probes or requests; it is
/// probed all the time and comes back with the first good answer. Its keys are the next member's meanwhile.
/// threads: any. Does not: forward (exchange_peer.cpp does).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/fleet.hpp"
#include "gateway/heads.hpp"
#include "warmroute/route/gateway_ring.hpp"

namespace warmroute::gateway {

/// What a request's mark says.
struct Mark {
  bool there = false;                       ///< then it is not forwarded
  bool believed = false;                    ///< a member wrote it, for this gateway, just now
  std::optional<std::uint32_t> class_id{};  ///< of a caller that may say it, as that member found
};

/// Why a request that is another gateway's was served here after all.
enum class FallBack : std::uint8_t { connect = 0, broken = 1 };
inline constexpr std::array<std::string_view, 2> kFallBacks{"connect", "broken"};

struct PeerCounters {
  using Count = std::atomic<std::uint64_t>;
  Count forwarded{0};      ///< answered by another gateway
  Count received{0};       ///< with a mark that was believed
  Count marks_refused{0};  ///< with one that was not: served here
  Count loops_refused{0};  ///< received, and yet another's by the ring of here: the members' configurations differ
  Count rehomed{0};        ///< whose gateway was down
  std::array<Count, 2> fell_back{};
};

class Peers {
 public:
  /// `first_number`: of the members among all upstreams that connections are pooled for. lifetime: config and prober outlive it.
  /// errors: those of GatewayRing::build; io: the secret's file.
  static Result<std::unique_ptr<Peers>> open(const Config& config, std::size_t first_number,
                                             examples::asio::io_context& prober);
  /// Begins to probe. Once.
  void start();

  [[nodiscard]] Mark read_mark(const ClientRequest& request) const;
  /// returns: the mark for a request that is forwarded there; with `message`, for one of the gateways' own alone: its path, and its body.
  [[nodiscard]] std::string write_mark(const Upstream& peer, std::optional<std::uint32_t> class_id,
                                       const std::string& message = {}) const;
  /// returns: the number of the member that sent this one such a message; nothing: nobody whom it believes. cost: a MAC of the body.
  [[nodiscard]] std::optional<std::size_t> sender(const ClientRequest& request) const;

  /// returns: the gateway that the request is to be forwarded to; null: it is served here.
  [[nodiscard]] const Upstream* owner(const Request& request, const Policy& policy);
  /// A marked request, when it is known what it asks for.
  void received(const Mark& mark, const Request& request, const Policy& policy);
  void report(const Upstream& peer, const Report& report);

  /// returns: the value of Set-Cookie for an answer to it; empty: none is wanted.
  [[nodiscard]] std::string cookie_for(const ClientRequest& request) const;
  [[nodiscard]] const std::string& self() const noexcept { return config_.peers.self; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  /// shape: 0..size-1, in the configuration's order. What never changes of it.
  [[nodiscard]] const Upstream& member(std::size_t number) const noexcept { return *members_[number]; }
  [[nodiscard]] bool up(std::size_t number) const;
  [[nodiscard]] PeerCounters& counters() noexcept { return counters_; }

  void append_prometheus(std::string& out) const;
  /// returns: [{"name", "address", "self", "up", "reason", "cookie"}].
  [[nodiscard]] std::string to_json() const;

 private:
  Peers(const Config& config, GatewayRing ring, GatewayRing whole, std::string secret,
        examples::asio::io_context& prober);
  Awaitable<void> watch(Upstream& peer);
  Awaitable<Report> probe(const Upstream& peer);
  [[nodiscard]] std::string_view believed(const ClientRequest& request) const;
  [[nodiscard]] std::string mac(std::string_view text) const;
  [[nodiscard]] std::string cookie_value(std::string_view name) const;

  const Config& config_;
  GatewayRing ring_;
  const GatewayRing whole_;  // on which nobody is ever down
  const std::string secret_;
  examples::asio::io_context& prober_;
  std::string own_cookie_;
  PeerCounters counters_;
  mutable std::mutex mutex_;  // of what changes in the members
  std::vector<std::unique_ptr<Upstream>> members_;
  std::atomic<std::size_t> down_{0};
};

}  // namespace warmroute::gateway
