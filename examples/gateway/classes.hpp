/// Of which class a request is: what a caller that may say so says, else what the configuration has for its key or its team.
/// Invariant: nobody gets into another class by a header of his own. A header counts from keys that are trusted, and from addresses
/// that are, but never because it came through another gateway: that one says in its mark what it found.
#pragma once

#include <cstdint>
#include <optional>

#include "common/asio.hpp"
#include "gateway/classes_config.hpp"
#include "gateway/client.hpp"
#include "gateway/peers.hpp"
#include "warmroute/result.hpp"
#include "warmroute/usage/keys.hpp"

namespace warmroute::gateway {

/// returns: whether the address is in that network.
[[nodiscard]] bool contains(const Network& network, const examples::asio::ip::address& address);

/// returns: the class in the header of a caller whose address is trusted; nothing: it has none, or is not.
/// errors: invalid_value: it is no number.
Result<std::optional<std::uint32_t>> class_by_address(const ClassConfig& config, const ClientRequest& request,
                                                      const Mark& mark, const examples::asio::ip::address& caller);

/// returns: the request's class. errors: as class_by_address.
Result<std::uint32_t> class_of(const ClassConfig& config, const ClientRequest& request, const Mark& mark,
                               const examples::asio::ip::address& caller, const KeyGrant& grant);

}  // namespace warmroute::gateway
