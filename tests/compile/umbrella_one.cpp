#include <gtest/gtest.h>

#include <warmroute/warmroute.hpp>

// Defined in umbrella_two.cpp.
const void* address_of_no_replica_there();
warmroute::Status status_made_there();

TEST(Umbrella, IsOneProgramInTwoTranslationUnits) {
  EXPECT_EQ(address_of_no_replica_there(), &warmroute::kNoReplica);
  const warmroute::Status status = status_made_there();
  EXPECT_EQ(status.code(), warmroute::Code::stale);
  EXPECT_EQ(warmroute::code_name(status.code()), "stale");
}
