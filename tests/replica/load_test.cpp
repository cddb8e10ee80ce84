#include "warmroute/replica/load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "warmroute/route/baselines.hpp"

namespace warmroute {
namespace {

TEST(LoadBook, TheFirstPromptIsWorkedOnWhileTimePasses) {
  LoadBook book;
  book.requests = 2;
  book.pending_ns = 1'000;
  book.prefill_since = 5'000;
  EXPECT_EQ(book.pending_at(5'000), 1'000);
  EXPECT_EQ(book.pending_at(5'300), 700);
}

TEST(LoadBook, NoMoreThanOnePromptIsTakenForDoneBeforeItsFirstToken) {
  LoadBook book;
  book.requests = 4;
  book.pending_ns = 1'000;
  EXPECT_EQ(book.pending_at(1'000'000), 750) << "an engine that stopped does not look idle";
}

TEST(LoadBook, DecodingRequestsTakeNoTurn) {
  LoadBook book;
  book.requests = 4;
  book.decoding = 3;
  book.pending_ns = 1'000;
  EXPECT_EQ(book.pending_at(400), 600);
  book.decoding = 4;
  book.pending_ns = 0;
  EXPECT_EQ(book.pending_at(400), 0);
}

TEST(LoadBook, ATurnThatIsYetToComeIsNoProgress) {
  LoadBook book;
  book.requests = 1;
  book.pending_ns = 1'000;
  book.prefill_since = 9'000;
  EXPECT_EQ(book.pending_at(8'000), 1'000);
}

TEST(StillPending, IsLessByTheTimeThatPassedAndTheMeanPromptAtMost) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto draw = [&](std::uint64_t what) {
      return static_cast<std::int64_t>(mix(i * 4 + what) >> mix(i + what) % 63 >> 1);
    };
    const std::int64_t pending = draw(0), prompts = 1 + draw(1) % 5'000, since = draw(2), now = draw(3);
    const std::int64_t worked = std::max<std::int64_t>(0, now - since);
    EXPECT_EQ(still_pending(pending, prompts, since, now), pending - std::min(worked, pending / prompts)) << i;
    EXPECT_EQ(still_pending(pending, -draw(1) % 100, since, now), pending) << "nobody's turn";
  }
  EXPECT_EQ(still_pending(most, 1, 0, most), 0);
  EXPECT_EQ(still_pending(10, most, 0, most), 10);
}

}  // namespace
}  // namespace warmroute
