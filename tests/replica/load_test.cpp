#include "warmroute/replica/load.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace warmroute
