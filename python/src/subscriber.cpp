// KvSubscriber: KV events of many engines over ZeroMQ, on a thread of its own.
#include "warmroute/ingest/kv_subscriber.hpp"

#include "background.hpp"
#include "events.hpp"

namespace warmroute::python {
namespace {

using PySubscriber = Background<KvSubscriber>;

py::dict status_of(const KvEndpointStatus& s) {
  py::dict out;
  out["replica"] = replica_number(s.replica);
  out["connected"] = s.connected;
  out["connects"] = s.connects;
  out["bad_frames"] = s.bad_frames;
  out["source"] = status_dict(s.source, s.blocks_stored, s.blocks_removed);
  return out;
}

void bind_endpoints(py::class_<PySubscriber>& c) {
  const KvSourceOptions d;
  c.def(
      "add",
      [](PySubscriber& self, std::uint64_t replica, std::string events, std::string replay, std::string topic,
         std::optional<std::uint32_t> block_size, std::uint32_t engine_block_size,
         std::optional<std::uint64_t> hash_seed, std::string_view isolation_key, std::uint32_t replay_attempts,
         std::int64_t replay_timeout_ns, std::size_t max_message_bytes, std::size_t max_held_bytes,
         std::size_t max_orphan_blocks, std::int64_t orphan_age_ns) {
        auto& router = self.callbacks().router.cast<PyRouter&>();
        (void)value_of(router.router.replica(replica_of(replica)));
        KvEndpoint endpoint{replica_of(replica), std::move(events), std::move(replay), std::move(topic), {}};
        endpoint.source =
            kv_options(router, block_size, engine_block_size, hash_seed, !endpoint.replay.empty(), replay_attempts,
                       replay_timeout_ns, max_message_bytes, max_held_bytes, max_orphan_blocks, orphan_age_ns);
        endpoint.source.events.isolation_key = isolation_key;
        check(self.with([&](KvSubscriber& subscriber) { return subscriber.add(endpoint); }));
      },
      py::arg("replica"), py::arg("events"), py::arg("replay") = "", py::kw_only(), py::arg("topic") = "",
      py::arg("block_size") = std::nullopt, py::arg("engine_block_size") = d.events.engine_block_size,
      py::arg("hash_seed") = std::nullopt, py::arg("isolation_key") = "",
      py::arg("replay_attempts") = d.replay_attempts, py::arg("replay_timeout_ns") = d.replay_timeout.value,
      py::arg("max_message_bytes") = d.events.max_bytes, py::arg("max_held_bytes") = d.max_held_bytes,
      py::arg("max_orphan_blocks") = d.max_orphan_blocks, py::arg("orphan_age_ns") = d.orphan_age.value,
      "Listens to one publisher, i.e. one data-parallel rank, from now on; an engine that is not there yet is tried "
      "again.\n\nevents: e.g. 'tcp://10.0.0.1:5557' (rank r of vLLM and SGLang: that port + r). replay: e.g. "
      "'tcp://10.0.0.1:5558'; ''\nlets gaps clear the cache. The others: as KvSource has them.\n"
      "errors: Error stale, already_exists, invalid_argument (endpoints, options), io.");
}

}  // namespace

void bind_subscriber(py::module_& m) {
  m.attr("has_zmq") = WARMROUTE_PYTHON_ZMQ != 0;
  const KvSubscriberOptions d;
  py::class_<PySubscriber> c(m, "KvSubscriber", "See warmroute.KvSubscriber.",
                             py::custom_type_setup(&setup_gc_of<PySubscriber>));
  c.def(py::init([](PyRouter& router, LogCallback log, ClockCallback clock, std::size_t max_message_bytes,
                    int queue_messages, std::int64_t reconnect_from_ns, std::int64_t reconnect_to_ns) {
          auto self = std::make_unique<PySubscriber>(object_of(router), std::move(log), std::move(clock));
          KvSubscriberOptions options;
          if (!self->callbacks().log.is_none()) options.log = {&self->callbacks(), &Callbacks::write_log};
          if (!self->callbacks().clock.is_none()) {
            options.clock = &Callbacks::read_clock;
            options.clock_user = &self->callbacks();
          }
          options.max_message_bytes = max_message_bytes;
          options.queue_messages = queue_messages;
          options.reconnect_from = Nanos{reconnect_from_ns};
          options.reconnect_to = Nanos{reconnect_to_ns};
          self->begin([&] { return KvSubscriber::start(router.router, options); });
          return self;
        }),
        py::arg("router"), py::kw_only(), py::arg("log") = std::nullopt, py::arg("clock") = std::nullopt,
        py::arg("max_message_bytes") = d.max_message_bytes, py::arg("queue_messages") = d.queue_messages,
        py::arg("reconnect_from_ns") = d.reconnect_from.value, py::arg("reconnect_to_ns") = d.reconnect_to.value);
  bind_endpoints(c);
  c.def(
       "remove",
       [](PySubscriber& self, std::uint64_t replica) {
         check(self.with([&](KvSubscriber& subscriber) { return subscriber.remove(replica_of(replica)); }));
       },
       py::arg("replica"), "Nothing of that replica is applied once this returns. errors: Error not_found.")
      .def("close", &PySubscriber::close, "Ends the thread. Nothing is applied once this returns.")
      .def_property_readonly("closed", &PySubscriber::closed, "Whether close was called.")
      .def("_status",
           [](PySubscriber& self, std::uint64_t replica) {
             return AnyDict(status_of(value_of(
                 self.with([&](KvSubscriber& subscriber) { return subscriber.status(replica_of(replica)); }))));
           })
      .def("_statuses", [](PySubscriber& self) {
        py::list out;
        for (const KvEndpointStatus& s : self.with([](KvSubscriber& subscriber) { return subscriber.statuses(); })) {
          out.append(status_of(s));
        }
        return py::typing::List<AnyDict>(out);
      });
}

}  // namespace warmroute::python
