// The options of the other gateways.
#include <algorithm>
#include <cstdlib>

#include "common/text.hpp"
#include "gateway/config_options.hpp"

namespace warmroute::gateway {
namespace {

auto peer_text(std::string PeersConfig::*member) {
  return [=](Config& c, std::string_view v) {
    c.peers.*member = v;
    return v.empty() ? std::string("must not be empty") : std::string{};
  };
}

/// returns: whether it may stand in headers and cookies.
bool is_peer_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

std::string add_peer(PeersConfig& config, std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return "'" + std::string(text) + "' is not NAME=HOST:PORT";
  PeerConfig peer;
  peer.name = text.substr(0, equals);
  const auto url = examples::parse_base_url(text.substr(equals + 1));
  if (!url) return url.error().message;
  if (!is_peer_name(peer.name)) return "'" + peer.name + "': a gateway's name is letters, digits and ._-, 64 at most";
  if (!url->path.empty()) return "'" + std::string(text) + "': a gateway's address has no path";
  peer.host = url->host;
  peer.port = url->port;
  config.members.push_back(std::move(peer));
  return {};
}

void append_peer_options(std::vector<Option>& options) {
  options.push_back(
      {"gateway",
       "NAME=HOST:PORT",
       "a gateway before the same model servers, all of them and this one too, as often as there are any: "
       "each forwards a request once to the one whose it is",
       [](Config& c, std::string_view v) { return add_peer(c.peers, v); },
       {},
       true});
  options.push_back({"gateway_self", "NAME", "which of them this is", peer_text(&PeersConfig::self)});
  options.push_back({"gateway_secret_file", "FILE", "what all of them know and nobody else, 16 bytes at least",
                     peer_text(&PeersConfig::secret_file)});
  options.push_back(
      {"gateway_secret_env", "NAME", "or the variable that holds it", peer_text(&PeersConfig::secret_env)});
  options.push_back({"gateway_cookie", "NAME",
                     "set a cookie that tells a balancer in front whose a client's requests are",
                     peer_text(&PeersConfig::cookie)});
  options.push_back({"gateway_share_ms", "MS", "tell the others so often what is in flight here; 0: never (100)",
                     [](Config& c, std::string_view v) {
                       std::int64_t ms = 0;
                       auto fault = read_number<std::int64_t>(v, 0, 60'000, ms);
                       if (fault.empty()) c.peers.share = std::chrono::milliseconds(ms);
                       return fault;
                     }});
  options.push_back({"gateway_share_placements", "[true|false]",
                     "and which prompts were sent where, as hashes of their blocks (false)",
                     [](Config& c, std::string_view v) {
                       c.peers.share_placements = v == "true";
                       return v == "true" || v == "false" ? std::string{} : std::string("must be true or false");
                     },
                     "true"});
}

void complete_peers(PeersConfig& config, Faults& faults) {
  const auto fault = [&](const std::string& what) { faults.push_back("gateways: " + what); };
  if (!config.on()) {
    if (!(config.self + config.secret_env + config.secret_file + config.cookie).empty()) fault("there are no members");
    return;
  }
  const auto count = std::count_if(config.members.begin(), config.members.end(),
                                   [&](const PeerConfig& peer) { return peer.name == config.self; });
  if (count != 1) fault("self must be one of the members");
  if (config.secret_env.empty() == config.secret_file.empty())
    fault("one of secret_file and secret_env is needed, with what all members know and nobody else");
  if (!config.secret_env.empty() && std::getenv(config.secret_env.c_str()) == nullptr)
    fault("there is no variable '" + config.secret_env + "'");
  if (!config.cookie.empty() && !is_peer_name(config.cookie)) fault("a cookie's name is letters, digits and ._-");
}

}  // namespace warmroute::gateway
