// The map of models, as a configuration file has it.
#include <gtest/gtest.h>

#include <string>

#include "warmroute/route/models.hpp"

namespace warmroute {
namespace {

TEST(ModelMapJson, IsReadWhole) {
  const auto map = model_map_from_json(R"({
    "models": [{"name": "chat", "choice": "cheapest",
                "targets": [{"pool": "70b", "weight": 9}, {"pool": "70b-next", "model": "llama-next"}],
                "fallbacks": [{"pool": "api", "model": "gpt-x"}]}],
    "pools": [{"name": "api", "external": true, "requests_per_minute": 600, "tokens_per_minute": 90000, "max_in_flight": 20,
               "input_price": 2.5, "cached_input_price": 0.25, "output_price": 10}],
    "classes": [{"class_id": 7, "may_leave": false}],
    "unknown_names_are_pools": false, "seed": 5})");
  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->models.size(), 1U);
  const ModelEntry& chat = map->models[0];
  EXPECT_EQ(chat.name, "chat");
  EXPECT_EQ(chat.choice, TargetChoice::cheapest);
  ASSERT_EQ(chat.targets.size(), 2U);
  EXPECT_EQ(chat.targets[0].weight, 9U);
  EXPECT_EQ(chat.targets[1].model, "llama-next");
  ASSERT_EQ(chat.fallbacks.size(), 1U);
  EXPECT_EQ(chat.fallbacks[0].pool, "api");
  ASSERT_EQ(map->pools.size(), 1U);
  const PoolTerms& api = map->pools[0];
  EXPECT_TRUE(api.external);
  EXPECT_EQ(api.requests_per_minute, 600);
  EXPECT_EQ(api.tokens_per_minute, 90'000);
  EXPECT_EQ(api.max_in_flight, 20);
  EXPECT_EQ(api.input_price, 2'500'000);  // picos a token
  EXPECT_EQ(api.cached_input_price, 250'000);
  EXPECT_EQ(api.output_price, 10'000'000);
  ASSERT_EQ(map->classes.size(), 1U);
  EXPECT_FALSE(map->classes[0].may_leave);
  EXPECT_FALSE(map->unknown_names_are_pools);
  EXPECT_EQ(map->seed, 5U);
}

TEST(ModelMapJson, NamesEveryFaultWithItsPath) {
  const auto map = model_map_from_json(
      R"({"models": [{"targets": [{"weight": -1}, 5], "choice": "best"}, {"name": "x", "target": 1}],
    "pools": [{"name": "p", "input_price": -2, "external": "yes"}], "classes": {}, "other": 1})");
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, Code::invalid_argument);
  for (const std::string part :
       {"models[0].targets[0].weight must be an integer", "models[0].targets[0].pool is missing",
        "models[0].targets[1] must be an object", "models[0].choice must be one of weight cheapest",
        "models[0].name is missing", "models[1].target is not a member of this",
        "pools[0].input_price must be USD per million tokens", "pools[0].external must be true or false",
        "classes must be an array", "other is not a member of this", "model 'x' has no targets"}) {
    EXPECT_NE(map.error().message.find(part), std::string::npos) << part << "\nin " << map.error().message;
  }
}

TEST(ModelMapJson, RefusesWhatIsNoJsonOrTooMuchOrSaidTwice) {
  const auto twice = model_map_from_json(R"({"seed": 1, "seed": 2})");
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("seed is there twice"), std::string::npos) << twice.error().message;
  EXPECT_EQ(model_map_from_json("{").error().code, Code::invalid_json);
  EXPECT_EQ(model_map_from_json("[]").error().code, Code::invalid_argument);
  EXPECT_EQ(model_map_from_json(std::string(std::size_t{5} << 20, ' ')).error().code, Code::too_large);
  EXPECT_TRUE(model_map_from_json("{}"));
}

}  // namespace
}  // namespace warmroute
