/// A gateway in the test's own process, in front of scripted model servers.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "gateway/fake_server.hpp"
#include "gateway/gateway.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::testing {

inline const std::string kUsageAnswer =
    R"({"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":32,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":16}}})";

/// returns: a configuration with replicas r0, r1, ... at those ports, round robin (so that tests know whose turn it is) and short times.
inline gateway::Config config_for(const std::vector<std::uint16_t>& ports) {
  gateway::Config config;
  config.port = 0;
  config.policy.algorithm = Algorithm::round_robin;
  config.probe_interval = std::chrono::milliseconds(20);
  config.shutdown_timeout = std::chrono::milliseconds(5'000);
  for (const auto port : ports) {
    gateway::ReplicaConfig replica;
    replica.spec.name = "r" + std::to_string(config.replicas.size());
    replica.host = "127.0.0.1";
    replica.port = port;
    config.replicas.push_back(replica);
  }
  return config;
}

struct Rig {
  explicit Rig(gateway::Config config) {
    auto started = gateway::Gateway::start(std::move(config));
    if (!started) {
      ADD_FAILURE() << started.error().message;
      std::abort();
    }
    it = std::move(*started);
  }
  [[nodiscard]] std::uint16_t port() const { return it->port(); }
  [[nodiscard]] Answer chat(std::string_view text = "hello", bool stream = false) const {
    return call(port(), "POST", "/v1/chat/completions", chat_body(text, stream));
  }
  [[nodiscard]] RouterStatistics statistics() const { return it->router().statistics(); }
  [[nodiscard]] std::uint64_t outcomes(Outcome outcome) const {
    return statistics().outcomes[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] std::uint64_t retries() const {
    std::uint64_t sum = 0;
    for (const auto& n : it->counters().retries) sum += n.load();
    return sum;
  }
  [[nodiscard]] std::uint64_t timeouts(gateway::Timeout which) const {
    return it->counters().timeouts[static_cast<std::size_t>(which)].load();
  }
  [[nodiscard]] Health health(std::size_t number) const { return it->router().replicas().at(number).spec.health; }
  /// Every ticket is released and nothing is left on any replica's book.
  [[nodiscard]] bool books_are_empty() const {
    const RouterStatistics all = statistics();
    for (const auto& replica : all.replicas) {
      const LoadReading& load = replica.load;
      if (load.requests != 0 || load.pending_tokens != 0 || load.pending_ns != 0 || load.context_tokens != 0 ||
          load.decoding != 0)
        return false;
    }
    return all.tickets_in_flight == 0 && it->counters().requests_in_flight.load() == 0;
  }

  std::unique_ptr<gateway::Gateway> it;
};

#define EXPECT_BOOKS_EMPTY(rig) \
  EXPECT_TRUE(eventually([&] { return (rig).books_are_empty(); })) << "a ticket or its load was not released"

}  // namespace warmroute::testing
