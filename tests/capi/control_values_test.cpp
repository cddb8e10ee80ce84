// The numbers, names and defaults of warmroute_control.h are those of the C++ interface.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "warmroute.h"
#include "warmroute/control/applier.hpp"
#include "warmroute/control/sink.hpp"
#include "warmroute/control/source.hpp"

namespace warmroute {
namespace {

static_assert(WR_ON_EXPIRED_SERVE == static_cast<int>(OnExpired::serve));
static_assert(WR_ON_EXPIRED_DENY_NEW_KEYS == static_cast<int>(OnExpired::deny_new_keys));
static_assert(WR_ON_EXPIRED_DENY_ALL == static_cast<int>(OnExpired::deny_all));
static_assert(WR_PUBLIC_KEY_BYTES == sizeof(VerifyingKey::public_key));
static_assert(WR_SIGNING_SEED_BYTES == 32);

TEST(CControlDefaults, AreThoseOfCpp) {
  for (std::uint32_t i = 0; i <= WR_ON_EXPIRED_DENY_ALL; ++i) {
    EXPECT_EQ(std::string(wr_on_expired_name(i)), on_expired_name(static_cast<OnExpired>(i)));
  }
  const wr_snapshot_options snapshot = WR_SNAPSHOT_OPTIONS_INIT;
  EXPECT_EQ(snapshot.max_bytes, SnapshotOptions{}.max_bytes);
  EXPECT_EQ(snapshot.max_keys, SnapshotOptions{}.max_keys);
  EXPECT_EQ(snapshot.max_faults, SnapshotOptions{}.max_faults);
  const wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  EXPECT_EQ(trust.allow_unsigned != 0, SnapshotTrust{}.allow_unsigned);
  const wr_file_source_options source = WR_FILE_SOURCE_OPTIONS_INIT;
  EXPECT_EQ(source.interval_ns, FileSourceOptions{}.interval.value);
  EXPECT_EQ(source.retry_to_ns, FileSourceOptions{}.retry_to.value);
  EXPECT_EQ(source.max_bytes, FileSourceOptions{}.max_bytes);
  const wr_handover_options handover = WR_HANDOVER_OPTIONS_INIT;
  EXPECT_EQ(handover.batch, HandoverOptions{}.batch);
  EXPECT_EQ(handover.interval_ns, HandoverOptions{}.interval.value);
  EXPECT_EQ(handover.backoff_from_ns, HandoverOptions{}.backoff_from.value);
  EXPECT_EQ(handover.backoff_to_ns, HandoverOptions{}.backoff_to.value);
}

}  // namespace
}  // namespace warmroute
