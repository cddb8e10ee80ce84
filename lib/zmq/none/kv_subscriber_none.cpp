// The subscriber of a build without ZeroMQ, for the C interface and the Python extension: it says so when it is started, and is never more.
#include "warmroute/ingest/kv_subscriber.hpp"

namespace warmroute {

namespace {
Error no_zeromq() {
  return {Code::unsupported,
          "built without ZeroMQ (WARMROUTE_WITH_ZMQ, libzmq): bring the messages yourself and give them to a KvSource",
          kNoOffset};
}
}  // namespace

struct KvSubscriber::Impl {};

KvSubscriber::KvSubscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvSubscriber::~KvSubscriber() = default;
KvSubscriber::KvSubscriber(KvSubscriber&&) noexcept = default;
KvSubscriber& KvSubscriber::operator=(KvSubscriber&&) noexcept = default;

Result<KvSubscriber> KvSubscriber::start(Router&, KvSubscriberOptions) { return no_zeromq(); }
Status KvSubscriber::add(const KvEndpoint&) { return no_zeromq(); }
Status KvSubscriber::remove(ReplicaId) { return no_zeromq(); }
std::vector<KvEndpointStatus> KvSubscriber::statuses() const { return {}; }
Result<KvEndpointStatus> KvSubscriber::status(ReplicaId) const { return no_zeromq(); }

}  // namespace warmroute
