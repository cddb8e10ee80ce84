/// What a proxy does to the heads of requests and answers, and what a status code says about the replica that sent it.
#pragma once

#include <optional>
#include <string_view>

#include "common/asio.hpp"
#include "gateway/client.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::gateway {

/// Beast has a string view of its own.
inline std::string_view view(examples::beast::string_view text) noexcept { return {text.data(), text.size()}; }
inline examples::beast::string_view their(std::string_view text) noexcept { return {text.data(), text.size()}; }

using UpstreamRequest = examples::http::request<examples::http::span_body<const char>>;

/// On a request that another gateway forwarded, see peers.hpp. No model server gets to see it.
inline constexpr std::string_view kMarkHeader = "x-warmroute-forwarded";

/// A pool with terms is left alone as long as it says, but no longer than this.
inline constexpr Nanos kMostPoolWait = seconds(3'600);

/// What model servers are told instead of the client's key.
struct UpstreamKey {
  bool replaces = false;                 ///< false: the client's own passes
  std::string_view key{};                ///< empty: none
  AnswerApi api = AnswerApi::automatic;  ///< whose header it goes into
};

/// Where else a request goes than the client thought.
struct UpstreamWay {
  std::string target{};   ///< instead of the client's; empty: the same
  bool external = false;  ///< somebody else's server: cookies, addresses and our own headers stay here
};

/// The client's request as the model server gets it: same method and target; heads that concern one connection only are left out, and
/// compression is not asked for, since usage is read from the answer. lifetime: of the body.
UpstreamRequest upstream_request(const ClientRequest& request, std::string_view body, std::string_view host,
                                 std::optional<std::uint32_t> dp_rank, const UpstreamKey& key,
                                 const UpstreamWay& way = {});

/// The client's request as another gateway gets it: as it came, with the client's key, and with this mark instead of what it may have had.
UpstreamRequest peer_request(const ClientRequest& request, std::string_view host, std::string_view mark);

/// An answer's head without what concerns one connection only.
ResponseHead relayed_head(const ResponseHead& head);

/// The model server's answer as the client gets it, with the replica's name and how many cached tokens were expected of it (negative:
/// nobody asked).
ResponseHead client_head(const ResponseHead& head, std::string_view replica, std::int64_t expected_cached_tokens);

/// How a request with this status ended: 4xx is the client's, 429, 503 and 529 say "busy", other 5xx that something is broken.
[[nodiscard]] Outcome outcome_of_status(unsigned status) noexcept;
/// returns: whether another replica may well answer better.
[[nodiscard]] bool worth_a_retry(unsigned status) noexcept;
/// returns: what retry-after-ms, else Retry-After in seconds asks for, within bounds; a second when there is none.
[[nodiscard]] Nanos retry_after_of(const ResponseHead& head, Nanos most = seconds(30)) noexcept;

}  // namespace warmroute::gateway
