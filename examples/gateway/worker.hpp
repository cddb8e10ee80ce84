/// What a request needs on its way: things all threads share, and things each thread has for itself.
/// A thread runs one io_context alone, so its sessions, its pool and its parser need no locks and no strands; the router, the
/// fleet's health and the counters are safe from any thread.
#pragma once

#include <atomic>
#include <set>

#include "common/asio.hpp"
#include "gateway/accounting.hpp"
#include "gateway/config.hpp"
#include "gateway/control_feed.hpp"
#include "gateway/counters.hpp"
#include "gateway/engine_events.hpp"
#include "gateway/engine_polls.hpp"
#include "gateway/fleet.hpp"
#include "gateway/peer_shares.hpp"
#include "gateway/peers.hpp"
#include "gateway/retry_budget.hpp"
#include "gateway/upstream.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

class Client;

struct Shared {
  const Config& config;
  Router& router;
  ModelRouter* models;  ///< in front of it; null: model names are the replicas'
  Fleet& fleet;
  Counters& counters;
  RetryBudget& retries;
  const EngineEvents& events;
  const EnginePolls& polls;
  Accounting& books;
  const std::unique_ptr<ControlFeed>& control;  ///< null: there is none
  Peers* peers;                                 ///< null: there are none
  PeerShares* shares;                           ///< null: the same
  std::atomic<bool>& stopping;

  /// returns: how bodies are to be read under the policy of now.
  [[nodiscard]] RequestBodyOptions body_options() const;
};

struct Worker {
  explicit Worker(const Shared& all, std::size_t upstreams) : shared(all), pool(io, upstreams, all.counters) {}

  Shared shared;
  examples::asio::io_context io{1};
  Pool pool;
  RequestBodyParser parser;   ///< what it returns lives until the next call: never across a co_await
  std::set<Client*> clients;  ///< connected now
};

}  // namespace warmroute::gateway
