// KV events over ZeroMQ. A library without it is linked with one that refuses to start (lib/zmq/none).
#include <memory>
#include <optional>
#include <string>

#include "events.hpp"
#include "router.hpp"
#include "warmroute/ingest/kv_subscriber.hpp"
#include "worker.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_kv_subscriber {
  Router* router = nullptr;
  WorkerCalls calls;
  std::optional<KvSubscriber> subscriber;  // last: its thread uses the others
};

namespace {

const wr_kv_subscriber_options kSubscriberDefaults = WR_KV_SUBSCRIBER_OPTIONS_INIT;
const wr_kv_endpoint kEndpointDefaults = WR_KV_ENDPOINT_INIT;
const wr_kv_source_options kEndpointSourceDefaults = WR_KV_SOURCE_OPTIONS_INIT;

// A pause in whole milliseconds that an int takes.
bool is_pause(std::int64_t ns) noexcept { return ns >= 0 && ns / 1'000'000 <= 0x7fff'ffff; }

wr_status read_endpoint(const wr_kv_endpoint& e, const Policy& policy, KvEndpoint& out, wr_error* err) {
  const Input<wr_kv_source_options> source(e.source != nullptr ? e.source : &kEndpointSourceDefaults,
                                           kEndpointSourceDefaults);
  if (!source) return source.refuse(err, "source is NULL");
  if (!abi_fits(source->abi_version)) return refuse_abi(err, source->abi_version);
  if (!readable(e.events) || !readable(e.replay) || !readable(e.topic) || !readable(source->isolation_key)) {
    return null_argument(err, "events, replay, topic or the source's isolation_key has a size and no data");
  }
  if (source->notice != nullptr) {
    return fail(err, Code::invalid_argument, "the source of a subscriber has no notice: its log tells");
  }
  out = {id_of(e.replica), std::string(view(e.events)), std::string(view(e.replay)), std::string(view(e.topic)),
         source_options_of(*source, policy)};
  out.source.events.isolation_key = view(source->isolation_key);
  return WR_STATUS_OK;
}

}  // namespace

extern "C" {

wr_status wr_kv_subscriber_new(wr_router* router, const wr_kv_subscriber_options* options, wr_kv_subscriber** out,
                               wr_error* err) {
  if (router == nullptr || out == nullptr) return null_argument(err, "router or out is NULL");
  const Input<wr_kv_subscriber_options> in(options != nullptr ? options : &kSubscriberDefaults, kSubscriberDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->queue_messages > 0x7fff'ffff || in->max_message_bytes > INT64_MAX || !is_pause(in->reconnect_from_ns) ||
      !is_pause(in->reconnect_to_ns)) {
    return fail(err, Code::invalid_argument,
                "queue_messages and the pauses in milliseconds must lie in 0..2^31 - 1, max_message_bytes below 2^63");
  }
  return guard(err, [&] {
    auto handle = std::make_unique<wr_kv_subscriber>();
    handle->router = &router->router;
    handle->calls = {in->clock, in->clock_user, in->log, in->log_user};
    KvSubscriberOptions given;
    handle->calls.give(given);
    given.max_message_bytes = in->max_message_bytes;
    given.queue_messages = static_cast<int>(in->queue_messages);
    given.reconnect_from = Nanos{in->reconnect_from_ns};
    given.reconnect_to = Nanos{in->reconnect_to_ns};
    auto started = KvSubscriber::start(router->router, given);
    if (!started) return fail(err, started.error());
    handle->subscriber.emplace(std::move(*started));
    *out = handle.release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_kv_subscriber_free(wr_kv_subscriber* subscriber) { delete subscriber; }

wr_status wr_kv_subscriber_add(wr_kv_subscriber* subscriber, const wr_kv_endpoint* endpoint, wr_error* err) {
  if (subscriber == nullptr) return null_argument(err, "subscriber is NULL");
  const Input<wr_kv_endpoint> in(endpoint, kEndpointDefaults);
  if (!in) return in.refuse(err, "endpoint is NULL");
  return guard(err, [&] {
    if (const auto known = subscriber->router->replica(id_of(in->replica)); !known) return fail(err, known.error());
    KvEndpoint whole;
    if (const wr_status bad = read_endpoint(*in, subscriber->router->policy(), whole, err); bad != WR_STATUS_OK) {
      return bad;
    }
    return done(subscriber->subscriber->add(whole), err);
  });
}

wr_status wr_kv_subscriber_remove(wr_kv_subscriber* subscriber, wr_replica_id replica, wr_error* err) {
  if (subscriber == nullptr) return null_argument(err, "subscriber is NULL");
  return guard(err, [&] { return done(subscriber->subscriber->remove(id_of(replica)), err); });
}

wr_status wr_kv_subscriber_read_status(const wr_kv_subscriber* subscriber, wr_replica_id replica,
                                       wr_kv_endpoint_status* status, wr_kv_source_status* source, wr_error* err) {
  if (subscriber == nullptr) return null_argument(err, "subscriber is NULL");
  if ((status != nullptr && !writable(status)) || (source != nullptr && !writable(source))) {
    return null_argument(err, kBadOutput);
  }
  return guard(err, [&] {
    const auto s = subscriber->subscriber->status(id_of(replica));
    if (!s) return fail(err, s.error());
    if (status != nullptr) write(status, wr_kv_endpoint_status{0, s->connected, s->connects, s->bad_frames, {}});
    if (source != nullptr) write(source, status_of(s->source, s->blocks_stored, s->blocks_removed));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
