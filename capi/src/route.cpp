// The path of a request: route, peek, tickets, one by one and in batches; explanations. Nothing is copied that has its size already.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decision.hpp"
#include "policy.hpp"
#include "router.hpp"
#include "warmroute/route/explain.hpp"
#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/route/models.hpp"
#include "warmroute/route/peer_load.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_gateway_ring {
  GatewayRing ring;
};
struct wr_models {
  explicit wr_models(Router& router) : models(router) {}
  ModelRouter models;
};

namespace {

const wr_request kRequestDefaults = WR_REQUEST_INIT;

bool readable_request(const wr_request& r) noexcept {
  return readable(r.model) && readable(r.adapter) && readable(r.session) && readable(r.tenant) &&
         readable(r.cache_salt) && readable(r.token_ids, r.token_count) && readable(r.block_hashes, r.block_count) &&
         readable(r.excluded, r.excluded_count);
}
constexpr std::string_view kUnreadable = "a string or list of the request has a size and no data";
constexpr std::string_view kBlockKind = "block_kind is not one of WR_BLOCKS_...";

static_assert(sizeof(wr_replica_id) == sizeof(ReplicaId) && offsetof(wr_replica_id, generation) == 4 &&
              offsetof(ReplicaId, generation) == 4);

Request request_of(const wr_request& r) noexcept {
  Request out;
  out.model = view(r.model);
  out.adapter = view(r.adapter);
  out.session = view(r.session);
  out.tenant = view(r.tenant);
  out.cache_salt = view(r.cache_salt);
  out.token_ids = {r.token_ids, r.token_count};
  out.blocks = block_hashes(r.block_hashes, r.block_count);
  out.block_kind = static_cast<BlockKind>(r.block_kind);
  out.input_tokens = r.input_tokens;
  out.prompt_bytes = r.prompt_bytes;
  out.max_output_tokens = r.max_output_tokens;
  out.class_id = r.class_id;
  out.priority = r.priority;
  out.deadline = Nanos{r.deadline_ns};
  out.stream = r.stream != 0;
  out.excluded = {reinterpret_cast<const ReplicaId*>(r.excluded), r.excluded_count};
  out.exact_pool = r.exact_pool != 0;
  if (r.pinned.generation != 0) out.pinned = id_of(r.pinned);  // generations begin at 1
  return out;
}

// The usual size is filled in place: building and copying 200 bytes more took 8 ns (bench_capi).
void give_decision(wr_decision* out, const Decision& d) noexcept {
  if (out->struct_size == sizeof *out) {
    fill(*out, d);
    return;
  }
  wr_decision whole;
  fill(whole, d);
  write(out, whole);
}

// returns: what is wrong with one request, or OK.
wr_status check(const Input<wr_request>& in, wr_error* err) noexcept {
  if (!in) return in.refuse(err, "request is NULL");
  if (!readable_request(*in)) return null_argument(err, kUnreadable);
  if (in->block_kind > WR_BLOCKS_TEXT) return fail(err, Code::out_of_range, kBlockKind);
  return WR_STATUS_OK;
}

template <class RouterHandle, class Ask>
wr_status ask_one(RouterHandle* router, const wr_request* request, wr_decision* out, wr_error* err,
                  Ask&& ask) noexcept {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const Input<wr_request> in(request, kRequestDefaults);
  if (const wr_status bad = check(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    give_decision(out, ask(router->router, request_of(*in)));
    return WR_STATUS_OK;
  });
}

template <class RouterHandle, class Ask>
wr_status ask_many(RouterHandle* router, const wr_request* requests, std::size_t count, std::size_t stride,
                   wr_decision* out, std::size_t out_stride, wr_error* err, Ask&& ask) noexcept {
  if (router == nullptr || !readable(requests, count) || !readable(out, count)) {
    return null_argument(err, "router, requests or out is NULL");
  }
  if (!strides_fit<wr_request>(count, stride) || !strides_fit<wr_decision>(count, out_stride)) {
    return fail(err, Code::invalid_argument, "a stride is smaller than its struct, or no multiple of its alignment");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!writable(at(out, i, out_stride))) {
      char message[96];
      std::snprintf(message, sizeof message, "struct_size of decision %zu is not set: nothing was routed", i);
      return fail(err, Code::invalid_argument, message);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    wr_decision* decision = at(out, i, out_stride);
    const wr_status status = ask_one(router, at(requests, i, stride), decision, nullptr, ask);
    if (status != WR_STATUS_OK) {
      wr_decision none = WR_DECISION_INIT;
      none.status = status;
      write(decision, none);
    }
  }
  return WR_STATUS_OK;
}

const auto kRoute = [](Nanos now) {
  return [now](Router& router, const Request& request) { return router.route(request, now); };
};
const auto kPeek = [](Nanos now) {
  return [now](const Router& router, const Request& request) { return router.peek(request, now); };
};

template <class Text>
wr_status explain(const wr_router* router, const wr_request* request, std::int64_t now_ns, char* buf, std::size_t cap,
                  std::size_t* needed, wr_error* err, Text&& text) noexcept {
  if (router == nullptr || needed == nullptr) return null_argument(err, "router or needed is NULL");
  const Input<wr_request> in(request, kRequestDefaults);
  if (const wr_status bad = check(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    return give(text(router->router.explain(request_of(*in), Nanos{now_ns})), 1, buf, cap, needed, err);
  });
}

wr_status released(bool done) noexcept { return done ? WR_STATUS_OK : WR_STATUS_STALE; }

UsageCounts usage_of(const wr_usage& u) noexcept { return {u.input_tokens, u.cached_tokens, u.output_tokens}; }

const wr_usage kUsageDefaults = WR_USAGE_INIT;

const wr_model_choice kChoiceDefaults = WR_MODEL_CHOICE_INIT;
ModelTicket ticket_of(wr_ticket ticket, const wr_model_choice& choice) noexcept {
  return {Ticket{ticket}, choice.ticket_pool, choice.ticket_tokens};
}
void give_choice(wr_model_choice* out, const ModelDecision& d) noexcept {
  wr_model_choice whole = WR_MODEL_CHOICE_INIT;
  whole.external = d.external;
  whole.target = d.target;
  whole.refused = d.refused;
  whole.forbidden = d.forbidden;
  whole.ticket_pool = d.ticket.pool;
  whole.ticket_tokens = d.ticket.charged_tokens;
  whole.pool = str(d.pool);
  whole.model = str(d.model);
  write(out, whole);
}

template <class Each>
wr_status each_ticket(wr_router* router, const wr_ticket* tickets, std::size_t count, std::size_t stride,
                      wr_status* out, Each&& each) noexcept {
  if (router == nullptr || !readable(tickets, count) || !strides_fit<wr_ticket>(count, stride)) {
    return WR_STATUS_INVALID_ARGUMENT;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const wr_status status = each(*at(tickets, i, stride), i);
    if (out != nullptr) out[i] = status;
  }
  return WR_STATUS_OK;
}

}  // namespace

extern "C" {

wr_status wr_router_route(wr_router* router, const wr_request* request, int64_t now_ns, wr_decision* out,
                          wr_error* err) {
  return ask_one(router, request, out, err, kRoute(Nanos{now_ns}));
}
wr_status wr_router_route_batch(wr_router* router, const wr_request* requests, size_t count, size_t stride,
                                int64_t now_ns, wr_decision* out, size_t out_stride, wr_error* err) {
  return ask_many(router, requests, count, stride, out, out_stride, err, kRoute(Nanos{now_ns}));
}
wr_status wr_router_peek(const wr_router* router, const wr_request* request, int64_t now_ns, wr_decision* out,
                         wr_error* err) {
  return ask_one(router, request, out, err, kPeek(Nanos{now_ns}));
}
wr_status wr_router_peek_batch(const wr_router* router, const wr_request* requests, size_t count, size_t stride,
                               int64_t now_ns, wr_decision* out, size_t out_stride, wr_error* err) {
  return ask_many(router, requests, count, stride, out, out_stride, err, kPeek(Nanos{now_ns}));
}

wr_status wr_router_explain_json(const wr_router* router, const wr_request* request, int64_t now_ns, char* buf,
                                 size_t cap, size_t* needed, wr_error* err) {
  return explain(router, request, now_ns, buf, cap, needed, err, [](const Explanation& e) { return to_json(e); });
}
wr_status wr_router_explain_text(const wr_router* router, const wr_request* request, int64_t now_ns, char* buf,
                                 size_t cap, size_t* needed, wr_error* err) {
  return explain(router, request, now_ns, buf, cap, needed, err, [](const Explanation& e) { return to_text(e); });
}

wr_status wr_router_first_token(wr_router* router, wr_ticket ticket, int64_t now_ns) {
  if (router == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  return guard(nullptr, [&] { return released(router->router.first_token(Ticket{ticket}, Nanos{now_ns})); });
}

wr_status wr_router_transfer_done(wr_router* router, wr_ticket ticket, int64_t now_ns) {
  if (router == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  return guard(nullptr, [&] { return released(router->router.transfer_done(Ticket{ticket}, Nanos{now_ns})); });
}

wr_status wr_router_finish(wr_router* router, wr_ticket ticket, const wr_usage* usage, int64_t now_ns) {
  if (router == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  const Input<wr_usage> in(usage != nullptr ? usage : &kUsageDefaults, kUsageDefaults);
  if (!in) return in.refuse(nullptr, {});
  return guard(nullptr, [&] { return released(router->router.finish(Ticket{ticket}, usage_of(*in), Nanos{now_ns})); });
}

wr_status wr_router_fail(wr_router* router, wr_ticket ticket, uint32_t outcome, int64_t now_ns) {
  if (router == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  if (outcome == WR_OUTCOME_FINISHED || outcome >= WR_OUTCOME_LEASE_EXPIRED) return WR_STATUS_OUT_OF_RANGE;
  return guard(nullptr, [&] {
    return released(router->router.fail(Ticket{ticket}, static_cast<Outcome>(outcome), Nanos{now_ns}));
  });
}

wr_status wr_router_first_token_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                                      int64_t now_ns, wr_status* out) {
  return each_ticket(router, tickets, count, stride, out,
                     [&](wr_ticket ticket, std::size_t) { return wr_router_first_token(router, ticket, now_ns); });
}

wr_status wr_router_finish_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                                 const wr_usage* usages, size_t usage_stride, int64_t now_ns, wr_status* out) {
  if (usages != nullptr && !strides_fit<wr_usage>(count, usage_stride)) return WR_STATUS_INVALID_ARGUMENT;
  return each_ticket(router, tickets, count, stride, out, [&](wr_ticket ticket, std::size_t i) {
    return wr_router_finish(router, ticket, usages == nullptr ? nullptr : at(usages, i, usage_stride), now_ns);
  });
}

wr_status wr_router_fail_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                               uint32_t outcome, int64_t now_ns, wr_status* out) {
  if (outcome == WR_OUTCOME_FINISHED || outcome >= WR_OUTCOME_LEASE_EXPIRED) return WR_STATUS_OUT_OF_RANGE;
  return each_ticket(router, tickets, count, stride, out,
                     [&](wr_ticket ticket, std::size_t) { return wr_router_fail(router, ticket, outcome, now_ns); });
}

wr_status wr_router_advance(wr_router* router, int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  return guard(err, [&] {
    router->router.advance(Nanos{now_ns});
    return WR_STATUS_OK;
  });
}

wr_status wr_models_new(wr_router* router, wr_models** out, wr_error* err) {
  if (router == nullptr || out == nullptr) return null_argument(err, "router or out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_models>(router->router).release();
    return WR_STATUS_OK;
  });
}

void wr_models_free(wr_models* models) { delete models; }

wr_status wr_models_set_json(wr_models* models, wr_str json, wr_error* err) {
  if (models == nullptr || !readable(json)) return null_argument(err, "models is NULL, or json has no data");
  return guard(err, [&] {
    const auto map = model_map_from_json(view(json));
    if (!map) return fail(err, map.error());
    return done(models->models.set_map(*map), err);
  });
}

wr_status wr_models_route(wr_models* models, const wr_request* request, int64_t now_ns, wr_decision* out,
                          wr_model_choice* choice, wr_error* err) {
  if (models == nullptr) return null_argument(err, "models is NULL");
  if (!writable(out) || !writable(choice)) return null_argument(err, kBadOutput);
  const Input<wr_request> in(request, kRequestDefaults);
  if (const wr_status bad = check(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    const ModelDecision d = models->models.route(request_of(*in), Nanos{now_ns});
    give_decision(out, d.decision);
    give_choice(choice, d);
    return WR_STATUS_OK;
  });
}

wr_status wr_models_finish(wr_models* models, wr_ticket ticket, const wr_model_choice* choice, const wr_usage* usage,
                           int64_t now_ns) {
  if (models == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  const Input<wr_model_choice> chosen(choice, kChoiceDefaults);
  const Input<wr_usage> in(usage != nullptr ? usage : &kUsageDefaults, kUsageDefaults);
  if (!chosen) return chosen.refuse(nullptr, {});
  if (!in) return in.refuse(nullptr, {});
  return guard(nullptr, [&] {
    return released(models->models.finish(ticket_of(ticket, *chosen), usage_of(*in), Nanos{now_ns}));
  });
}

wr_status wr_models_fail(wr_models* models, wr_ticket ticket, const wr_model_choice* choice, uint32_t outcome,
                         int64_t retry_after_ns, int64_t now_ns) {
  if (models == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  if (outcome == WR_OUTCOME_FINISHED || outcome >= WR_OUTCOME_LEASE_EXPIRED) return WR_STATUS_OUT_OF_RANGE;
  const Input<wr_model_choice> chosen(choice, kChoiceDefaults);
  if (!chosen) return chosen.refuse(nullptr, {});
  return guard(nullptr, [&] {
    return released(models->models.fail(ticket_of(ticket, *chosen), static_cast<Outcome>(outcome), Nanos{now_ns},
                                        Nanos{retry_after_ns}));
  });
}

wr_status wr_models_readings_json(const wr_models* models, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (models == nullptr || needed == nullptr) return null_argument(err, "models or needed is NULL");
  return guard(err, [&] { return give(to_json(models->models.readings()), 1, buf, cap, needed, err); });
}

wr_status wr_router_loads(const wr_router* router, int64_t now_ns, char* buf, size_t cap, size_t* needed,
                          wr_error* err) {
  if (router == nullptr || needed == nullptr) return null_argument(err, "router or needed is NULL");
  return guard(err, [&] {
    std::vector<PeerLoad> loads;
    router->router.loads(loads, Nanos{now_ns});
    std::string text;
    append_peer_loads(loads, text);
    return give(text, 1, buf, cap, needed, err);
  });
}

wr_status wr_router_peer_loads(wr_router* router, uint32_t peer, wr_str loads, int64_t now_ns, size_t* known,
                               wr_error* err) {
  if (router == nullptr || !readable(loads)) return null_argument(err, "router is NULL, or loads has no data");
  return guard(err, [&] {
    const auto read = read_peer_loads(view(loads));
    if (!read) return fail(err, read.error());
    const auto taken = router->router.peer_loads(peer, *read, Nanos{now_ns});
    if (!taken) return fail(err, taken.error());
    if (known != nullptr) *known = *taken;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_peer_placed(wr_router* router, wr_replica_id replica, const wr_request* request, int64_t now_ns,
                                wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  const Input<wr_request> in(request, kRequestDefaults);
  if (const wr_status bad = check(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err,
               [&] { return done(router->router.peer_placed(id_of(replica), request_of(*in), Nanos{now_ns}), err); });
}

wr_status wr_gateway_ring_new(const wr_str* names, size_t count, wr_str self, wr_gateway_ring** out, wr_error* err) {
  if (out == nullptr || !readable(names, count) || !readable(self)) {
    return null_argument(err, "names, self or out is NULL");
  }
  return guard(err, [&] {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < count; ++i) {
      if (!readable(names[i])) return null_argument(err, "a name has a size and no data");
      list.emplace_back(view(names[i]));
    }
    auto ring = GatewayRing::build(list, view(self));
    if (!ring) return fail(err, ring.error());
    *out = std::make_unique<wr_gateway_ring>(wr_gateway_ring{std::move(*ring)}).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_gateway_ring_free(wr_gateway_ring* ring) { delete ring; }

wr_status wr_gateway_ring_key(const wr_gateway_ring* ring, const wr_request* request, const wr_policy* policy,
                              uint64_t* key, wr_error* err) {
  if (ring == nullptr || key == nullptr) return null_argument(err, "ring or key is NULL");
  const Input<wr_request> in(request, kRequestDefaults);
  if (const wr_status bad = check(in, err); bad != WR_STATUS_OK) return bad;
  const Input<wr_policy> knobs(policy, policy_defaults());
  if (!knobs) return knobs.refuse(err, "policy is NULL");
  return guard(err, [&] {
    const Policy valid = policy_of(*knobs);
    if (const Status fine = validate(valid); !fine) return fail(err, fine.error());
    *key = ring->ring.key(request_of(*in), valid);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

uint32_t wr_gateway_ring_owner(const wr_gateway_ring* ring, uint64_t key, uint32_t forwarded) {
  return ring == nullptr ? kNoMember : ring->ring.owner(key, forwarded != 0).index;
}

uint32_t wr_gateway_ring_self(const wr_gateway_ring* ring) { return ring == nullptr ? kNoMember : ring->ring.self(); }

void wr_gateway_ring_set_up(wr_gateway_ring* ring, uint32_t gateway, uint32_t up) {
  if (ring != nullptr) ring->ring.set_up(gateway, up != 0);
}

}  // extern "C"
