#include "warmroute/result.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace warmroute {
namespace {

// Numbers cross the C interface and lie in files: this table only grows.
const std::map<std::int32_t, std::string_view>& fixed_codes() {
  static const std::map<std::int32_t, std::string_view> codes = {
      {0, "ok"},
      {1, "invalid_argument"},
      {2, "not_found"},
      {3, "already_exists"},
      {4, "out_of_range"},
      {5, "capacity"},
      {6, "stale"},
      {7, "unsupported"},
      {8, "io"},
      {9, "internal"},
      {10, "out_of_memory"},
      {11, "abi_mismatch"},
      {20, "invalid_json"},
      {21, "invalid_utf8"},
      {22, "invalid_unicode"},
      {23, "too_deep"},
      {24, "too_large"},
      {25, "not_an_object"},
      {26, "missing_field"},
      {27, "wrong_type"},
      {28, "value_out_of_range"},
      {29, "invalid_value"},
      {30, "empty_prompt"},
      {31, "malformed"},
  };
  return codes;
}

// A code that was added without a name does not compile (-Wswitch); one without a line above fails here.
TEST(Code, KeepsItsNumberAndNameForEver) {
  for (std::int32_t number = -1; number < 1'000; ++number) {
    const auto known = fixed_codes().find(number);
    EXPECT_EQ(code_name(static_cast<Code>(number)), known == fixed_codes().end() ? "unknown" : known->second) << number;
  }
}

TEST(Code, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const auto& [number, name] : fixed_codes()) names.insert(code_name(static_cast<Code>(number)));
  EXPECT_EQ(names.size(), fixed_codes().size());
  EXPECT_EQ(names.count("unknown"), 0u);
}

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return Error{Code::malformed, "not a digit", 3};
  return c - '0';
}

TEST(Result, HoldsAValue) {
  const auto seven = parse_digit('7');
  ASSERT_TRUE(seven.ok());
  EXPECT_TRUE(static_cast<bool>(seven));
  EXPECT_EQ(seven.code(), Code::ok);
  EXPECT_EQ(*seven, 7);
  EXPECT_EQ(seven.value(), 7);
}

TEST(Result, OrAnErrorWithCodeMessageAndOffset) {
  const auto none = parse_digit('x');
  ASSERT_FALSE(none.ok());
  EXPECT_FALSE(static_cast<bool>(none));
  EXPECT_EQ(none.code(), Code::malformed);
  EXPECT_EQ(none.error().message, "not a digit");
  EXPECT_EQ(none.error().offset, 3u);
}

TEST(Result, OfACodeIsNotAnErrorByThatCode) {
  const Result<Code> parsed{Code::stale};
  EXPECT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.code(), Code::ok);
  EXPECT_EQ(*parsed, Code::stale);
}

TEST(Result, GivesUpAMoveOnlyValue) {
  Result<std::unique_ptr<int>> made{std::make_unique<int>(5)};
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(**made, 5);
  const std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 5);
  const std::unique_ptr<int> taken_by_star = *Result<std::unique_ptr<int>>{std::make_unique<int>(6)};
  EXPECT_EQ(*taken_by_star, 6);
}

TEST(Result, ReachesMembersAndChangesThem) {
  Result<std::vector<int>> list{std::vector<int>{1, 2}};
  list->push_back(3);
  (*list)[0] = 9;
  const auto& seen = list;
  EXPECT_EQ(seen->size(), 3u);
  EXPECT_EQ(seen->front(), 9);
}

TEST(Status, IsOkUntilAnErrorIsGiven) {
  const Status fine;
  EXPECT_TRUE(fine.ok());
  EXPECT_EQ(fine.code(), Code::ok);
  const Status full = Error{Code::capacity, "64 replicas are configured; raise max_replicas", kNoOffset};
  EXPECT_FALSE(full.ok());
  EXPECT_FALSE(static_cast<bool>(full));
  EXPECT_EQ(full.code(), Code::capacity);
  EXPECT_EQ(full.error().offset, kNoOffset);
}

TEST(Error, IsInternalUnlessItSaysOtherwise) {
  EXPECT_EQ(Error{}.code, Code::internal) << "a forgotten code never reads as success";
  EXPECT_EQ(Error{}.offset, kNoOffset);
}

}  // namespace
}  // namespace warmroute
