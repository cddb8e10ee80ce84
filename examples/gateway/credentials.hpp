/// A client's key: where the APIs' clients put it, and how it is kept from the model server. Keys are never logged.
///   Authorization: Bearer KEY    OpenAI's clients
///   x-api-key: KEY               Anthropic's
///   x-goog-api-key: KEY, ?key=   Google's
///   api-key: KEY                 Azure's
#pragma once

#include <string>
#include <string_view>

#include "gateway/client.hpp"

namespace warmroute::gateway {

/// returns: the first of those that is there; empty: none. lifetime: of the request, or of `scratch`.
std::string_view client_key(const ClientRequest& request, std::string& scratch);

/// returns: whether a header of this name holds a key.
[[nodiscard]] bool is_key_header(std::string_view name);

/// returns: the target without `key=` in its query.
std::string without_key(std::string_view target);

}  // namespace warmroute::gateway
