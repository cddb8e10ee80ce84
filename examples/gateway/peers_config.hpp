/// What the gateway is told of its peers. Part of the configuration, see config.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::gateway {

struct PeerConfig {
  std::string name;  ///< letters, digits and ._- only, 64 at most: it stands in headers
  std::string host;
  std::uint16_t port = 0;
};

struct PeersConfig {
  std::string self;                      ///< one of the members
  std::vector<PeerConfig> members;       ///< the same in all of them, this one included; empty: there are no peers
  std::string secret_env;                ///< variable with what all members know and nobody else
  std::string secret_file;               ///< or a file with it
  std::string cookie;                    ///< name of the cookie that a front balancer pins by; empty: none is set
  std::chrono::milliseconds share{100};  ///< between messages to each other one of what is in flight here; 0: none
  bool share_placements = false;         ///< and of which prompts were sent where, as hashes of their blocks

  [[nodiscard]] bool on() const noexcept { return !members.empty(); }
};

/// returns: what is wrong with a member's "NAME=HOST:PORT", which is appended; empty = nothing.
std::string add_peer(PeersConfig& config, std::string_view text);

}  // namespace warmroute::gateway
