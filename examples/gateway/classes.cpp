// Whose word counts, see classes.hpp.
#include "gateway/classes.hpp"

#include <algorithm>
#include <charconv>

#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;

namespace {

std::array<std::uint8_t, 16> bytes_of(const asio::ip::address& address) {
  const auto six = address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()) : address.to_v6();
  std::array<std::uint8_t, 16> bytes{};
  const auto theirs = six.to_bytes();
  std::copy(theirs.begin(), theirs.end(), bytes.begin());
  return bytes;
}

/// returns: what the header says; nothing when there is none. errors: invalid_value.
Result<std::optional<std::uint32_t>> class_in_header(const ClassConfig& config, const ClientRequest& request) {
  if (request.count(their(config.header)) == 0) return std::optional<std::uint32_t>{};
  const std::string_view text = view(request[their(config.header)]);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || request.count(their(config.header)) != 1)
    return Error{Code::invalid_value, config.header + ": must be one number", kNoOffset};
  return std::optional(value);
}

}  // namespace

std::optional<Network> read_network(std::string_view text) {
  const auto slash = text.find('/');
  examples::error_code error;
  const auto address = asio::ip::make_address(std::string(text.substr(0, slash)), error);
  if (error) return std::nullopt;
  const unsigned most = address.is_v4() ? 32 : 128;
  unsigned bits = most;
  if (slash != std::string_view::npos) {
    const char* const last = text.data() + text.size();
    const auto [end, wrong] = std::from_chars(text.data() + slash + 1, last, bits);
    if (wrong != std::errc{} || end != last || bits > most) return std::nullopt;
  }
  return Network{bytes_of(address), bits + 128 - most};
}

bool contains(const Network& network, const asio::ip::address& address) {
  const auto bytes = bytes_of(address);
  for (unsigned bit = 0; bit < network.bits; bit += 8) {
    const unsigned rest = network.bits - bit;
    const auto mask = static_cast<std::uint8_t>(rest >= 8 ? 0xff : 0xff << (8 - rest));
    if (((bytes[bit / 8] ^ network.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

Result<std::optional<std::uint32_t>> class_by_address(const ClassConfig& config, const ClientRequest& request,
                                                      const Mark& mark, const asio::ip::address& caller) {
  const bool trusted = !mark.there && std::any_of(config.trusted_addresses.begin(), config.trusted_addresses.end(),
                                                  [&](const Network& network) { return contains(network, caller); });
  if (!trusted) return std::optional<std::uint32_t>{};
  return class_in_header(config, request);
}

Result<std::uint32_t> class_of(const ClassConfig& config, const ClientRequest& request, const Mark& mark,
                               const asio::ip::address& caller, const KeyGrant& grant) {
  const auto by_address = class_by_address(config, request, mark, caller);
  if (!by_address) return by_address.error();
  if (*by_address) return **by_address;
  if (mark.class_id) return *mark.class_id;
  const auto& keys = config.trusted_keys;
  if (!grant.key_id.empty() && std::find(keys.begin(), keys.end(), grant.key_id) != keys.end()) {
    const auto by_key = class_in_header(config, request);
    if (!by_key) return by_key.error();
    if (*by_key) return **by_key;
  }
  if (const auto key = config.keys.find(grant.key_id); key != config.keys.end()) return key->second;
  if (const auto team = config.teams.find(grant.team_id); team != config.teams.end()) return team->second;
  return config.usual;
}

}  // namespace warmroute::gateway
