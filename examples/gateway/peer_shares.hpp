/// What gateways tell one another of their load (route/peer_load.hpp), so that each decides as if all requests were its own: every
/// `gateways.share_ms` each of them POSTs what it has in flight to each peer that is up and, with `gateways.share_placements`, the block
/// hashes of prompts and where it sent them; and takes what the others post.
/// Invariants: a message is taken only with the members' secret over it, body included; a peer has nothing in flight when it has said
/// nothing for the policy's signals_max_age; one that is slow, or broken, costs its own messages and nobody's time. What is kept is bounded:
/// the last kMostBlocks hashes, and a peer that was not told of some in time is never told.
/// threads: telling runs on the upkeep thread alone, a coroutine and a connection per peer; taking, placed() and pages: any.
/// Does not: judge a peer's health by it (Peers probes); tell sessions, models, or anything of clients.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/peers.hpp"
#include "gateway/upstream.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

inline constexpr std::string_view kLoadsPath = "/peers/loads";
inline constexpr std::string_view kPlacementsPath = "/peers/placements";

/// Why a peer's message was not taken.
enum class ShareFault : std::uint8_t { stranger = 0, malformed = 1, too_large = 2 };
inline constexpr std::array<std::string_view, 3> kShareFaults{"stranger", "malformed", "too_large"};

/// A prompt that went to a replica. As text a line of rank, kind, hashes in hexadecimal, 16 digits each, and the replica's name.
struct Placement {
  std::string replica;
  std::uint32_t dp_rank = 0;
  BlockKind kind = BlockKind::tokens;
  std::vector<BlockHash> blocks;
};
void append_placement(const Placement& placement, std::string& out);
/// errors: invalid_argument with the byte where a line is none.
Result<std::vector<Placement>> read_placements(std::string_view text);

class PeerShares {
 public:
  static constexpr std::size_t kMostBytes =
      256 * 1024;  // of a message: of loads, twice what 1,024 replicas with long names need
  static constexpr std::size_t kMostBlocks = 64 * 1024;   // that wait to be told
  static constexpr std::size_t kMostOfPrompt = 8 * 1024;  // the first blocks of a longer one

  /// lifetime: all of them outlive it.
  PeerShares(Router& router, const Fleet& fleet, const Peers& peers, const Config& config,
             examples::asio::io_context& upkeep);
  /// Begins to tell; nothing without an interval. Once.
  void start();

  /// returns: whether a path is one of the gateways' own.
  [[nodiscard]] static bool is_path(std::string_view target) {
    return target == kLoadsPath || target == kPlacementsPath;
  }
  /// A POST on one of those paths. returns: the status to answer it with.
  unsigned take(const ClientRequest& request);

  /// A request was routed. Notes its blocks for the peers if placements are told; else one branch.
  void placed(const Decision& decision, const Request& request) {
    if (tells_placements_) note(decision, request);
  }

  /// Families peer_loads_* and peer_placements_*: counters of messages, and per peer its last one's age and what it has in flight.
  void append_prometheus(std::string& out) const;

 private:
  using Count = std::atomic<std::uint64_t>;
  struct Said {
    Nanos at{0};  // of its last message of loads; 0: none yet
    std::int64_t requests = 0;
    std::uint64_t messages = 0;
  };

  void note(const Decision& decision, const Request& request);
  std::string next_placements(std::uint64_t& told);
  Awaitable<void> tell(std::size_t peer);
  Awaitable<bool> send_all(const Upstream& peer, std::unique_ptr<Connection>& connection, std::uint64_t& told);
  Awaitable<bool> send(const Upstream& peer, Connection& connection, std::string_view path, std::string body,
                       TimePoint deadline);
  unsigned take_loads(std::size_t peer, std::string_view body);
  unsigned take_placements(std::string_view body);
  unsigned refuse(ShareFault why, unsigned status);

  Router& router_;
  const Fleet& fleet_;
  const Peers& peers_;
  const Config& config_;
  examples::asio::io_context& upkeep_;
  const bool tells_placements_;
  Count sent_{0}, failed_{0}, placements_sent_{0}, placements_dropped_{0}, placements_taken_{0}, placements_unknown_{0};
  std::array<Count, 3> refused_{};
  mutable std::mutex mutex_;  // of what follows
  std::vector<Said> said_;    // by member
  std::deque<Placement> placements_;
  std::uint64_t first_placement_ = 0;  // how many were before those
  std::size_t waiting_blocks_ = 0;
};

}  // namespace warmroute::gateway
