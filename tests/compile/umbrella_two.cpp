#include <warmroute/warmroute.hpp>

const void* address_of_no_replica_there();
warmroute::Status status_made_there();

const void* address_of_no_replica_there() { return &warmroute::kNoReplica; }

warmroute::Status status_made_there() {
  return warmroute::Error{warmroute::Code::stale, "made in the other translation unit", warmroute::kNoOffset};
}
