/// The bodies of a request that is prefilled on one server and decoded on another, in the words of vLLM and its connectors:
///   to the first   the client's body, for one token and not as a stream, with kv_transfer_params {"do_remote_decode": true, ...}
///   its answer     kv_transfer_params: where the KV lies, whatever members that connector has
///   to the second  the client's body with these
/// Invariant: other members keep their bytes and their order. What a client says of kv_transfer_params itself goes to no server while
/// requests may be parted: it names hosts to fetch from.
/// Does not: check bodies, which were read before; understand what is in the parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warmroute::gateway {

inline constexpr std::string_view kTransferMember = "kv_transfer_params";

/// returns: the body for the server that prefills.
std::string prefill_body(std::string_view body);
/// returns: the body with these parameters instead of its own; with none where `parameters` is empty.
std::string decode_body(std::string_view body, std::string_view parameters);

/// What the server that prefilled said.
struct PrefillAnswer {
  std::string parameters;           ///< a JSON object; empty: it said none
  std::int64_t cached_tokens = -1;  ///< -1: not said
};
PrefillAnswer read_prefill_answer(std::string_view body);

}  // namespace warmroute::gateway
