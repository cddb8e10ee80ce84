// KvSource: one publisher of KV events, over a transport of the caller's.
#include "events.hpp"

#include <mutex>

#include "arrays.hpp"
#include "background.hpp"

namespace warmroute::python {

KvSourceOptions kv_options(const PyRouter& router, const std::optional<std::uint32_t>& block_size,
                           std::uint32_t engine_block_size, const std::optional<std::uint64_t>& hash_seed, bool replay,
                           std::uint32_t replay_attempts, std::int64_t replay_timeout_ns, std::size_t max_message_bytes,
                           std::size_t max_held_bytes, std::size_t max_orphan_blocks, std::int64_t orphan_age_ns) {
  KvSourceOptions out;
  out.events = kv_event_options(router.router.policy());
  if (block_size) out.events.block_size = *block_size;
  if (hash_seed) out.events.hash_seed = *hash_seed;
  out.events.engine_block_size = engine_block_size;
  out.events.max_bytes = max_message_bytes;
  out.replay = replay;
  out.replay_attempts = replay_attempts;
  out.replay_timeout = Nanos{replay_timeout_ns};
  out.max_held_bytes = max_held_bytes;
  out.max_orphan_blocks = max_orphan_blocks;
  out.orphan_age = Nanos{orphan_age_ns};
  check(validate(out));
  return out;
}

py::dict status_dict(const KvSourceStatus& s, std::uint64_t blocks_stored, std::uint64_t blocks_removed) {
  py::dict out;
  out["state"] = s.state;
  out["next"] = s.next;
  out["unsure_since_ns"] = s.unsure_since.value;
  out["last_event_ns"] = s.last_event.value;
  out["messages"] = s.messages;
  out["replayed"] = s.replayed;
  out["duplicates"] = s.duplicates;
  out["gaps"] = s.gaps;
  out["resyncs"] = s.resyncs;
  out["restarts"] = s.restarts;
  out["bad_messages"] = s.bad_messages;
  out["bad_events"] = s.bad_events;
  out["unknown_removes"] = s.unknown_removes;
  out["orphan_blocks"] = s.orphan_blocks;
  out["held_bytes"] = s.held_bytes;
  out["blocks_stored"] = blocks_stored;
  out["blocks_removed"] = blocks_removed;
  return out;
}

namespace {

py::dict notice_dict(const KvNotice& n) {
  const std::string_view fault = kv_fault_name(n.fault);
  py::dict out;
  out["kind"] = n.kind;
  out["reason"] = n.reason;
  out["fault"] = py::str(fault.data(), fault.size());
  out["from_"] = n.from;
  out["to"] = n.to;
  out["block"] = static_cast<std::uint64_t>(n.block);
  out["parent"] = static_cast<std::uint64_t>(n.parent);
  return out;
}

// threads: any; calls take their turn. Notices are kept while a call lasts and told after it, without any lock.
class PyKvSource {
 public:
  PyKvSource(py::object router, std::uint64_t replica, KvSourceOptions options, std::string isolation_key,
             py::object notice)
      : router_(std::move(router)),
        notice_(std::move(notice)),
        isolation_key_(std::move(isolation_key)),
        source_(this->router().router, replica_of(replica), whole(options)) {}
  PyKvSource(const PyKvSource&) = delete;
  PyKvSource& operator=(const PyKvSource&) = delete;

  [[nodiscard]] PyRouter& router() const { return router_.cast<PyRouter&>(); }

  template <class Call>
  void run(Call&& call) {
    const std::vector<KvNotice> told = router().released([&] {
      const std::lock_guard lock(mutex_);
      call(source_);
      return std::exchange(notices_, {});
    });
    for (const KvNotice& notice : told) tell(notice);
  }
  std::optional<std::uint64_t> wants_replay() {
    const ReleasedGil gil;
    const std::lock_guard lock(mutex_);
    return source_.wants_replay();
  }
  [[nodiscard]] py::dict status() {
    const auto [status, stored, removed] = [&] {
      const ReleasedGil gil;
      const std::lock_guard lock(mutex_);
      const KvCounters& counters = source_.counters();
      return std::tuple(source_.status(), counters.blocks_stored, counters.blocks_removed);
    }();
    return status_dict(status, stored, removed);
  }
  [[nodiscard]] std::uint64_t replica() const { return replica_number(source_.replica()); }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(router_.ptr());
    Py_VISIT(notice_.ptr());
    return 0;
  }
  void clear() { notice_ = py::none(); }

 private:
  KvSourceOptions whole(KvSourceOptions options) {
    options.events.isolation_key = isolation_key_;
    if (notice_.is_none()) return options;
    options.user = this;
    options.notice = [](void* self, const KvNotice& n) { static_cast<PyKvSource*>(self)->notices_.push_back(n); };
    return options;
  }
  void tell(const KvNotice& n) {
    const py::object callback = notice_;
    if (callback.is_none()) return;
    try {
      unless_ending([&]() -> py::object { return callback(notice_dict(n)); });
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("warmroute notice callback");
    }
  }

  py::object router_, notice_;
  std::string isolation_key_;
  std::mutex mutex_;
  std::vector<KvNotice> notices_;
  KvSource source_;
};

using Frames = py::typing::Iterable<BytesView>;

// Frames of a message, read with the GIL: of one that somebody could write meanwhile, a copy.
struct HeldFrames {
  explicit HeldFrames(const py::object& frames) {
    if (PyBytes_Check(frames.ptr()) || PyUnicode_Check(frames.ptr())) {
      throw py::type_error("a message is a list of frames, not one of them: see live_payload for a bare payload");
    }
    for (const py::handle frame : frames) {
      if (!held.emplace_back().take(frame)) throw py::type_error("a frame must be bytes or a buffer");
      if (held.back().is_mutable()) copies.emplace_back(held.back().text());
    }
    std::size_t copied = 0;
    for (const BytesView& frame : held) {
      views.push_back(frame.is_mutable() ? std::string_view(copies[copied++]) : frame.text());
    }
  }
  std::vector<BytesView> held;
  std::vector<std::string> copies;
  std::vector<std::string_view> views;
};

void receive(PyKvSource& self, KvSocket socket, const py::object& frames, NowArg now_ns) {
  const HeldFrames message(frames);
  const KvMessage read = value_of(read_kv_frames(socket, message.views));
  const Nanos now = self.router().at(now_ns);
  self.run([&](KvSource& source) {
    if (socket == KvSocket::subscriber) source.live(read, now);
    else source.replayed(read, now);
  });
}

void receive_payload(PyKvSource& self, bool live, std::uint64_t seq, const BytesView& payload, NowArg now_ns) {
  std::string copy;
  KvMessage message;
  message.seq = seq;
  message.payload = payload.text();
  if (payload.is_mutable()) message.payload = copy = payload.text();
  const Nanos now = self.router().at(now_ns);
  self.run([&](KvSource& source) {
    if (live) source.live(message, now);
    else source.replayed(message, now);
  });
}

void bind_live(py::class_<PyKvSource>& c) {
  c.def(
       "live",
       [](PyKvSource& self, const Frames& frames, NowArg now_ns) {
         receive(self, KvSocket::subscriber, frames, now_ns);
       },
       py::arg("frames"), py::arg("now_ns") = std::nullopt,
       "A message from the publisher, in the order in which they came: its frames, [topic, seq, payload].\n\n"
       "errors: Error malformed, value_out_of_range (frames: dropped, and missed when the next one comes). A payload "
       "that\ncannot be decoded is no error of the call: the cache is cleared, a notice and bad_messages tell.")
      .def(
          "live_payload",
          [](PyKvSource& self, std::uint64_t seq, const BytesView& payload, NowArg now_ns) {
            receive_payload(self, true, seq, payload, now_ns);
          },
          py::arg("seq"), py::arg("payload"), py::arg("now_ns") = std::nullopt,
          "The same by its number and its payload, where the transport has no frames.")
      .def(
          "replayed",
          [](PyKvSource& self, const Frames& frames, NowArg now_ns, EnumArg<KvSocket> socket) {
            if (socket == KvSocket::subscriber) throw py::value_error("replays come over 'dealer' or 'req'");
            receive(self, socket, frames, now_ns);
          },
          py::arg("frames"), py::arg("now_ns") = std::nullopt, py::kw_only(),
          py::arg_v("socket", EnumArg<KvSocket>{KvSocket::dealer}, "'dealer'"),
          "A message from the replay socket, the one that ends the replay included; those that nobody waits for are "
          "dropped.\n\nsocket: 'dealer' has an empty frame first, 'req' has not. errors: as live.")
      .def(
          "replayed_payload",
          [](PyKvSource& self, std::uint64_t seq, const BytesView& payload, NowArg now_ns) {
            receive_payload(self, false, seq, payload, now_ns);
          },
          py::arg("seq"), py::arg("payload"), py::arg("now_ns") = std::nullopt,
          "The same by its number and its payload.")
      .def(
          "replay_ended",
          [](PyKvSource& self, NowArg now_ns) {
            KvMessage end;
            end.replay_end = true;
            const Nanos now = self.router().at(now_ns);
            self.run([&](KvSource& source) { source.replayed(end, now); });
          },
          py::arg("now_ns") = std::nullopt, "The replay is over, where the transport has no message for that.");
}

}  // namespace

void bind_events(py::module_& m) {
  const KvSourceOptions d;
  py::class_<PyKvSource> c(m, "KvSource",
                           "Keeps a router right about one engine's cache while its events get lost, come twice or "
                           "begin anew. See warmroute.KvSource.",
                           py::custom_type_setup(&setup_gc_of<PyKvSource>));
  using Notice = std::optional<py::typing::Callable<py::object(AnyDict)>>;
  c.def(py::init([](PyRouter& router, std::uint64_t replica, Notice notice, std::optional<std::uint32_t> block_size,
                    std::uint32_t engine_block_size, std::optional<std::uint64_t> hash_seed, std::string isolation_key,
                    bool replay, std::uint32_t replay_attempts, std::int64_t replay_timeout_ns,
                    std::size_t max_message_bytes, std::size_t max_held_bytes, std::size_t max_orphan_blocks,
                    std::int64_t orphan_age_ns) {
          (void)value_of(router.router.replica(replica_of(replica)));
          const auto options =
              kv_options(router, block_size, engine_block_size, hash_seed, replay, replay_attempts, replay_timeout_ns,
                         max_message_bytes, max_held_bytes, max_orphan_blocks, orphan_age_ns);
          return std::make_unique<PyKvSource>(object_of(router), replica, options, std::move(isolation_key),
                                              object_or_none(std::move(notice)));
        }),
        py::arg("router"), py::arg("replica"), py::kw_only(), py::arg("notice") = std::nullopt,
        py::arg("block_size") = std::nullopt, py::arg("engine_block_size") = d.events.engine_block_size,
        py::arg("hash_seed") = std::nullopt, py::arg("isolation_key") = "", py::arg("replay") = d.replay,
        py::arg("replay_attempts") = d.replay_attempts, py::arg("replay_timeout_ns") = d.replay_timeout.value,
        py::arg("max_message_bytes") = d.events.max_bytes, py::arg("max_held_bytes") = d.max_held_bytes,
        py::arg("max_orphan_blocks") = d.max_orphan_blocks, py::arg("orphan_age_ns") = d.orphan_age.value);
  bind_live(c);
  c.def("wants_replay", &PyKvSource::wants_replay,
        "The number to request a replay from (8 bytes, big-endian, on the wire), once per attempt; else None.\n\n"
        "Ask after live, replayed and advance.")
      .def(
          "advance",
          [](PyKvSource& self, NowArg now_ns) {
            const Nanos now = self.router().at(now_ns);
            self.run([&](KvSource& source) { source.advance(now); });
          },
          py::arg("now_ns") = std::nullopt, "Timeouts of replays and orphans: call it about once a second.")
      .def_property_readonly("replica", &PyKvSource::replica, "Whose cache it tells of.")
      .def("_status", [](PyKvSource& self) { return AnyDict(self.status()); });
}

}  // namespace warmroute::python
