// KV events over the caller's transport: one source per publisher.
#include <array>
#include <memory>
#include <string>

#include "events.hpp"
#include "router.hpp"
#include "warmroute/ingest/kv_source.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_kv_source {
  wr_kv_source(Router& router, ReplicaId replica, KvSourceOptions options, const wr_kv_source_options& given)
      : isolation_key(view(given.isolation_key)),
        notice(given.notice),
        notice_user(given.notice_user),
        source(router, replica, whole(options)) {}
  wr_kv_source(const wr_kv_source&) = delete;
  wr_kv_source& operator=(const wr_kv_source&) = delete;

  std::string isolation_key;  // the source keeps a view of it
  wr_kv_notice_fn notice;
  void* notice_user;
  KvSource source;

 private:
  KvSourceOptions whole(KvSourceOptions options) {
    options.events.isolation_key = isolation_key;
    if (notice == nullptr) return options;
    options.user = this;
    options.notice = [](void* self, const KvNotice& n) {
      const auto* handle = static_cast<const wr_kv_source*>(self);
      const wr_kv_notice out{sizeof(wr_kv_notice),
                             static_cast<std::uint32_t>(n.kind),
                             static_cast<std::uint32_t>(n.reason),
                             static_cast<std::uint32_t>(n.fault),
                             n.from,
                             n.to,
                             static_cast<std::uint64_t>(n.block),
                             static_cast<std::uint64_t>(n.parent),
                             {}};
      handle->notice(handle->notice_user, &out);
    };
    return options;
  }
};

namespace {

constexpr std::string_view kNoSource = "source is NULL";
const wr_kv_source_options kSourceDefaults = WR_KV_SOURCE_OPTIONS_INIT;

// No socket brings more than four frames; a fifth is kept so that it is seen.
constexpr std::size_t kMostFrames = 5;

template <class Take>
wr_status take(wr_kv_source* source, KvSocket socket, const wr_str* frames, std::size_t count, wr_error* err,
               Take&& apply) noexcept {
  if (source == nullptr || !readable(frames, count)) return null_argument(err, "source or frames is NULL");
  std::array<std::string_view, kMostFrames> views;
  const std::size_t kept = std::min(count, views.size());
  for (std::size_t i = 0; i < kept; ++i) {
    if (!readable(frames[i])) return null_argument(err, "a frame has a size and no data");
    views[i] = view(frames[i]);
  }
  return guard(err, [&] {
    const auto message = read_kv_frames(socket, {views.data(), kept});
    if (!message) return fail(err, message.error());
    apply(*message);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // namespace

KvSourceOptions capi::source_options_of(const wr_kv_source_options& o, const Policy& policy) noexcept {
  KvSourceOptions out;
  out.events = kv_event_options(policy);
  if (o.block_size != 0) {
    out.events.block_size = o.block_size;
    out.events.hash_seed = o.hash_seed;
  }
  out.events.engine_block_size = o.engine_block_size;
  out.events.max_bytes = o.max_message_bytes;
  out.replay = o.replay != 0;
  out.replay_attempts = o.replay_attempts;
  out.replay_timeout = Nanos{o.replay_timeout_ns};
  out.max_held_bytes = o.max_held_bytes;
  out.max_orphan_blocks = o.max_orphan_blocks;
  out.orphan_age = Nanos{o.orphan_age_ns};
  return out;
}

wr_kv_source_status capi::status_of(const KvSourceStatus& s, std::uint64_t stored, std::uint64_t removed) noexcept {
  return {0,
          static_cast<std::uint32_t>(s.state),
          s.next,
          s.unsure_since.value,
          s.last_event.value,
          s.messages,
          s.replayed,
          s.duplicates,
          s.gaps,
          s.resyncs,
          s.restarts,
          s.bad_messages,
          s.bad_events,
          s.unknown_removes,
          s.orphan_blocks,
          s.held_bytes,
          stored,
          removed,
          {}};
}

extern "C" {

const char* wr_kv_fault_name(uint32_t fault) {
  // string literals: they end in NUL
  return fault < kKvFaultCount ? kv_fault_name(static_cast<KvFault>(fault)).data() : "unknown";
}

wr_status wr_kv_source_new(wr_router* router, wr_replica_id replica, const wr_kv_source_options* options,
                           wr_kv_source** out, wr_error* err) {
  if (router == nullptr || out == nullptr) return null_argument(err, "router or out is NULL");
  const Input<wr_kv_source_options> in(options != nullptr ? options : &kSourceDefaults, kSourceDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->isolation_key)) return null_argument(err, "isolation_key has a size and no data");
  return guard(err, [&] {
    if (const auto known = router->router.replica(id_of(replica)); !known) return fail(err, known.error());
    const KvSourceOptions whole = source_options_of(*in, router->router.policy());
    if (const Status sound = validate(whole); !sound) return fail(err, sound.error());
    *out = std::make_unique<wr_kv_source>(router->router, id_of(replica), whole, *in).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_kv_source_free(wr_kv_source* source) { delete source; }

wr_status wr_kv_source_live(wr_kv_source* source, const wr_str* frames, size_t count, int64_t now_ns, wr_error* err) {
  return take(source, KvSocket::subscriber, frames, count, err,
              [&](const KvMessage& message) { source->source.live(message, Nanos{now_ns}); });
}

wr_status wr_kv_source_replayed(wr_kv_source* source, uint32_t socket, const wr_str* frames, size_t count,
                                int64_t now_ns, wr_error* err) {
  if (socket != WR_KV_DEALER && socket != WR_KV_REQ) {
    return fail(err, Code::out_of_range, "socket is not WR_KV_DEALER or WR_KV_REQ");
  }
  return take(source, static_cast<KvSocket>(socket), frames, count, err,
              [&](const KvMessage& message) { source->source.replayed(message, Nanos{now_ns}); });
}

wr_status wr_kv_source_wants_replay(wr_kv_source* source, uint32_t* wanted, uint64_t* from, wr_error* err) {
  if (source == nullptr || wanted == nullptr || from == nullptr) {
    return null_argument(err, "source, wanted or from is NULL");
  }
  const auto first = source->source.wants_replay();
  *wanted = first ? 1 : 0;
  if (first) *from = *first;
  return WR_STATUS_OK;
}

wr_status wr_kv_source_advance(wr_kv_source* source, int64_t now_ns, wr_error* err) {
  if (source == nullptr) return null_argument(err, kNoSource);
  return guard(err, [&] {
    source->source.advance(Nanos{now_ns});
    return WR_STATUS_OK;
  });
}

wr_status wr_kv_source_read_status(const wr_kv_source* source, wr_kv_source_status* out, wr_error* err) {
  if (source == nullptr) return null_argument(err, kNoSource);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const KvCounters& counters = source->source.counters();
  write(out, status_of(source->source.status(), counters.blocks_stored, counters.blocks_removed));
  return WR_STATUS_OK;
}

}  // extern "C"
