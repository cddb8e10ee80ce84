// tests/data/request_relations.jsonl: which bodies share a beginning of the canonical prompt, and how much of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "request_case_file.hpp"

namespace warmroute {
namespace {

using test::api_of;
using test::body_of;
using test::lines_of;

struct Side {
  std::string canonical;
  std::string space;  // model, adapter, salt, tenant, kind of blocks
  std::vector<BlockHash> blocks;
};

void read_side(simdjson::dom::object line, const std::string& which, Side& side) {
  RequestBodyOptions options;
  std::string tenant;
  std::string adapter;
  if (simdjson::dom::object opts; line["opts_" + which].get(opts) == simdjson::SUCCESS) {
    std::string_view text;
    if (opts["tenant"].get(text) == simdjson::SUCCESS) tenant = text;
    if (opts["adapter"].get(text) == simdjson::SUCCESS) adapter = text;
  }
  options.tenant = tenant;
  options.adapter = adapter;
  const BodyApi api = api_of(line["api_" + which].get_string().value());
  const std::string body = body_of(line, which);
  RequestBodyParser parser;
  const auto parsed = parser.parse(api, body, options);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto canonical = canonical_prompt(api, body, options);
  ASSERT_TRUE(canonical.ok()) << canonical.error().message;
  side.canonical = *canonical;
  for (const std::string_view part : {parsed->model, parsed->adapter, parsed->cache_salt, parsed->tenant}) {
    side.space += std::to_string(part.size()) + ":" + std::string(part) + ",";
  }
  side.space += parsed->token_blocks ? "tokens" : "text";
  side.blocks.assign(parsed->blocks.begin(), parsed->blocks.end());
  const std::size_t unit = parsed->token_blocks ? options.block_size * sizeof(std::uint32_t) : kTextBlockBytes;
  EXPECT_EQ(side.blocks.size(), side.canonical.size() / unit);
}

template <class Container>
std::size_t common_prefix(const Container& a, const Container& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

void expect_relation(simdjson::dom::object line) {
  Side a;
  Side b;
  read_side(line, "a", a);
  read_side(line, "b", b);
  const std::size_t shared = common_prefix(a.canonical, b.canonical);
  const bool same_space = a.space == b.space;
  const std::string_view relation = line["relation"].get_string().value();
  if (relation == "differ_from_start") {
    EXPECT_TRUE(!same_space || shared < kTextBlockBytes) << "shared bytes: " << shared;
    const bool same_model = a.space.substr(0, a.space.find(',')) == b.space.substr(0, b.space.find(','));
    if (same_model) {  // other models are other pools
      EXPECT_EQ(common_prefix(a.blocks, b.blocks), 0u);
    }
    return;
  }
  EXPECT_EQ(a.space, b.space);
  if (relation == "equal") {
    EXPECT_EQ(a.canonical, b.canonical);
    EXPECT_EQ(a.blocks, b.blocks);
  } else if (relation == "a_is_prefix_of_b") {
    EXPECT_EQ(shared, a.canonical.size());
    EXPECT_LT(a.canonical.size(), b.canonical.size());
    EXPECT_EQ(common_prefix(a.blocks, b.blocks), a.blocks.size());
  } else {
    EXPECT_EQ(relation, "share_prefix");
    EXPECT_LT(shared, a.canonical.size());
    EXPECT_LT(shared, b.canonical.size());
  }
  std::uint64_t bound = 0;
  if (line["min_shared_bytes"].get(bound) == simdjson::SUCCESS) {
    EXPECT_GE(shared, bound);
  }
  if (line["max_shared_bytes"].get(bound) == simdjson::SUCCESS) {
    EXPECT_LT(shared, bound);
  }
}

TEST(RequestRelations, EveryPairSharesWhatTheFileSays) {
  simdjson::dom::parser json;
  const auto lines = lines_of("request_relations.jsonl");
  EXPECT_GE(lines.size(), 122u);
  for (const std::string& line : lines) {
    const simdjson::dom::object object = json.parse(line).get_object();
    SCOPED_TRACE(std::string(object["id"].get_string().value()) + ": " +
                 std::string(object["why"].get_string().value()));
    expect_relation(object);
  }
}

}  // namespace
}  // namespace warmroute
