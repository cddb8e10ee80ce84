// The map of models from JSON, strictly; see text/strict_json.hpp.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "text/json_escape.hpp"
#include "text/strict_json.hpp"
#include "warmroute/route/models.hpp"

namespace warmroute {
namespace {

constexpr std::size_t kMaxModelBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxModelFaults = 64;
constexpr std::size_t kMaxModelName = 1'024;

using JsonValue = simdjson::dom::element;

// `read_row(path, element)` for each element of the array, which may be absent.
template <class Row, class Read>
void read_rows(text::Members& m, std::string_view name, std::vector<Row>& out, Read&& read_row) {
  const auto list = m.array(name);
  if (!list) return;
  const text::Path above = m.path(name);
  for (const JsonValue e : *list)
    out.push_back(read_row(text::Path{&above, {}, static_cast<std::ptrdiff_t>(out.size())}, e));
}

// USD per million tokens, as price lists have it; kept as picos per token.
void read_price(text::Members& m, std::string_view name, std::int64_t& out) {
  const auto* const e = m.find(name);
  double usd = 0;
  if (e == nullptr) return;
  if (e->get(usd) != simdjson::SUCCESS || !(usd >= 0 && usd <= 1e6))
    return m.fault(name, "must be USD per million tokens, 0 to 10^6");
  out = std::llround(usd * 1e6);
}

template <class Integer>
void read_number(text::Members& m, std::string_view name, Integer& out) {
  std::int64_t value = out;
  constexpr std::int64_t kMost = 1'000'000'000'000;
  m.integer(name, value, 0, std::min<std::int64_t>(kMost, std::numeric_limits<Integer>::max()));
  out = static_cast<Integer>(value);
}

ModelTarget read_target(text::Faults& faults, const text::Path& at, JsonValue e) {
  static constexpr std::array<std::string_view, 3> kNames{"pool", "model", "weight"};
  text::Members m(faults, at, e, kNames);
  ModelTarget t;
  m.need("pool");
  m.text("pool", t.pool, kMaxModelName, true);
  m.text("model", t.model, kMaxModelName, true);
  read_number(m, "weight", t.weight);
  return t;
}

ModelEntry read_model(text::Faults& faults, const text::Path& at, JsonValue e) {
  static constexpr std::array<std::string_view, 4> kNames{"name", "targets", "fallbacks", "choice"};
  static constexpr std::array<std::string_view, 2> kChoices{"weight", "cheapest"};
  text::Members m(faults, at, e, kNames);
  ModelEntry model;
  const auto target = [&faults](const text::Path& path, JsonValue row) { return read_target(faults, path, row); };
  m.need("name");
  m.text("name", model.name, kMaxModelName, true);
  read_rows(m, "targets", model.targets, target);
  read_rows(m, "fallbacks", model.fallbacks, target);
  m.choice("choice", kChoices, model.choice);
  return model;
}

PoolTerms read_pool(text::Faults& faults, const text::Path& at, JsonValue e) {
  static constexpr std::array<std::string_view, 8> kNames{
      "name",          "external",    "requests_per_minute", "tokens_per_minute",
      "max_in_flight", "input_price", "cached_input_price",  "output_price"};
  text::Members m(faults, at, e, kNames);
  PoolTerms p;
  m.need("name");
  m.text("name", p.name, kMaxModelName, true);
  m.flag("external", p.external);
  read_number(m, "requests_per_minute", p.requests_per_minute);
  read_number(m, "tokens_per_minute", p.tokens_per_minute);
  read_number(m, "max_in_flight", p.max_in_flight);
  read_price(m, "input_price", p.input_price);
  read_price(m, "cached_input_price", p.cached_input_price);
  read_price(m, "output_price", p.output_price);
  return p;
}

ClassRule read_class(text::Faults& faults, const text::Path& at, JsonValue e) {
  static constexpr std::array<std::string_view, 2> kNames{"class_id", "may_leave"};
  text::Members m(faults, at, e, kNames);
  ClassRule rule;
  m.need("class_id");
  read_number(m, "class_id", rule.class_id);
  m.flag("may_leave", rule.may_leave);
  return rule;
}

ModelMap read_map(text::Faults& faults, JsonValue root) {
  static constexpr std::array<std::string_view, 5> kNames{"models", "pools", "classes", "unknown_names_are_pools",
                                                          "seed"};
  const text::Path top;
  text::Members m(faults, top, root, kNames);
  ModelMap map;
  const auto with = [&faults](auto* read) {
    return [&faults, read](const text::Path& at, JsonValue e) { return read(faults, at, e); };
  };
  read_rows(m, "models", map.models, with(read_model));
  read_rows(m, "pools", map.pools, with(read_pool));
  read_rows(m, "classes", map.classes, with(read_class));
  m.flag("unknown_names_are_pools", map.unknown_names_are_pools);
  m.unsigned_integer("seed", map.seed);
  return map;
}

}  // namespace

Result<ModelMap> model_map_from_json(std::string_view json) {
  if (json.size() > kMaxModelBytes) return Error{Code::too_large, "models: more than 4 MiB of JSON", kMaxModelBytes};
  simdjson::dom::parser parser;
  JsonValue root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS)
    return Error{Code::invalid_json, std::string("models: not JSON: ") + simdjson::error_message(error), kNoOffset};
  text::Faults found(kMaxModelFaults);
  const ModelMap map = read_map(found, root);
  std::string faults = found.text();
  if (const Status valid = validate(map); !valid) {
    constexpr std::string_view kPrefix = "models: ";
    faults.append(faults.empty() ? "" : "; ").append(valid.error().message.substr(kPrefix.size()));
  }
  if (!faults.empty()) return Error{Code::invalid_argument, "models: " + faults, kNoOffset};
  return map;
}

std::string to_json(const std::vector<PoolTermsReading>& readings) {
  std::string out = "[";
  for (const PoolTermsReading& r : readings) {
    out += out.size() == 1 ? "{\"pool\":" : ",{\"pool\":";
    text::append_json_string(out, r.name);
    out += ",\"routed\":" + std::to_string(r.routed) + ",\"over_quota\":" + std::to_string(r.over_quota) +
           ",\"in_flight\":" + std::to_string(r.in_flight) +
           ",\"blocked_until_ns\":" + std::to_string(r.blocked_until.value) + "}";
  }
  return out + "]";
}

}  // namespace warmroute
