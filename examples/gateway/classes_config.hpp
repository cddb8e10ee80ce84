/// What the gateway is told of classes of requests. Part of the configuration, see config.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::gateway {

/// Addresses that begin alike; those of IPv4 as IPv6 writes them (::ffff:a.b.c.d).
struct Network {
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits = 128;
};
/// Reads "10.0.0.0/8", "::1". returns: nothing when it is no such thing.
std::optional<Network> read_network(std::string_view text);

struct ClassConfig {
  std::uint32_t usual = 0;                                 ///< of whoever is not named
  std::map<std::string, std::uint32_t, std::less<>> keys;  ///< by key id
  std::map<std::string, std::uint32_t, std::less<>> teams;
  std::string header = "x-warmroute-class";  ///< that trusted callers may say it with
  std::vector<std::string> trusted_keys;     ///< by key id
  std::vector<Network> trusted_addresses;    ///< of connections; a proxy's address is that of all who come through it
};

}  // namespace warmroute::gateway
