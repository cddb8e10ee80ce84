/// What a request's path says: how its body is read, in whose words its answer reports usage, and whether it is counted.
/// Invariant: every POST is counted but for those that are known to generate nothing, so that no path leads past the books.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/client.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::gateway {

struct Target {
  std::optional<BodyApi> body;  ///< how to read the prompt; nothing: it is not read
  AnswerApi answer = AnswerApi::automatic;
  std::string_view operation = "other";  ///< gen_ai.operation.name
  std::string_view provider = "other";   ///< gen_ai.provider.name: whose words are spoken, not whose server it is
  std::string model{};                   ///< where the path names it
  std::size_t model_at = 0;              ///< there, as it is written
  std::size_t model_size = 0;            ///< 0: the path names none
  bool routed = false;                   ///< by the router; else to any replica that is up
  bool counted = false;
  bool stream = false;  ///< where the path says so
};

/// What the path says of model and stream goes into a request that was read from its body.
inline void add_path(const Target& target, Request& request) {
  if (!target.model.empty()) request.model = target.model;
  request.stream = request.stream || target.stream;
}

/// returns: of the request's method and path. The query is not looked at.
Target target_of(const ClientRequest& request);

}  // namespace warmroute::gateway
