// Built instead of publisher_zmq.cpp where ZeroMQ is not.
#include "engine/publisher.hpp"

namespace warmroute::examples {

struct Publisher::Impl {
  std::string nowhere;
};

Publisher::Publisher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Publisher::~Publisher() = default;
Result<std::unique_ptr<Publisher>> Publisher::open(const PublisherOptions&) {
  return Error{Code::unsupported, "this build has no ZeroMQ (libzmq and WARMROUTE_WITH_ZMQ=ON)", kNoOffset};
}
void Publisher::restart() {}
void Publisher::publish(std::string) {}
const std::string& Publisher::events() const noexcept { return impl_->nowhere; }
const std::string& Publisher::replay() const noexcept { return impl_->nowhere; }

}  // namespace warmroute::examples
