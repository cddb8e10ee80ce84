// The map of models from JSON. Strict: unknown members and wrong types are faults, each with its path.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "text/json_escape.hpp"
#include "warmroute/route/models.hpp"

namespace warmroute {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::size_t kMaxModelBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxFaults = 64;

class ModelReader {
 public:
  void read(element root, ModelMap& map) {
    members(root, "", [&](std::string_view key, element value, const std::string& path) {
      if (key == "models")
        return rows(value, path, map.models, [this](element e, const std::string& p) { return model(e, p); });
      if (key == "pools")
        return rows(value, path, map.pools, [this](element e, const std::string& p) { return pool(e, p); });
      if (key == "classes")
        return rows(value, path, map.classes, [this](element e, const std::string& p) { return rule(e, p); });
      if (key == "unknown_names_are_pools") return boolean(value, path, map.unknown_names_are_pools);
      if (key == "seed") return number(value, path, map.seed);
      unknown(path);
    });
  }
  [[nodiscard]] const std::string& faults() const noexcept { return faults_; }

 private:
  void fault(const std::string& path, std::string_view text) {
    if (++count_ > kMaxFaults) return;
    faults_.append(faults_.empty() ? "" : "; ").append(path).append(" ").append(text);
  }
  void unknown(const std::string& path) { fault(path, "is not known here"); }

  template <class Visit>
  void members(element e, const std::string& path, Visit&& visit) {
    object o;
    if (e.get(o) != simdjson::SUCCESS) return fault(path.empty() ? "the map" : path, "must be an object");
    for (const auto field : o)
      visit(field.key, field.value, path.empty() ? std::string(field.key) : path + "." + std::string(field.key));
  }
  template <class Row, class Read>
  void rows(element e, const std::string& path, std::vector<Row>& out, Read&& read_row) {
    array list;
    if (e.get(list) != simdjson::SUCCESS) return fault(path, "must be an array");
    for (const element row : list) {
      const std::string at = path + "[" + std::to_string(out.size()) + "]";
      out.push_back(read_row(row, at));
    }
  }
  void text(element e, const std::string& path, std::string& out) {
    std::string_view v;
    if (e.get(v) != simdjson::SUCCESS) return fault(path, "must be a string");
    out = v;
  }
  void boolean(element e, const std::string& path, bool& out) {
    if (e.get(out) != simdjson::SUCCESS) fault(path, "must be true or false");
  }
  template <class Integer>
  void number(element e, const std::string& path, Integer& out) {
    std::uint64_t v = 0;
    if (e.get(v) != simdjson::SUCCESS || v > static_cast<std::uint64_t>(std::numeric_limits<Integer>::max()))
      return fault(path, "must be an integer from 0 to " + std::to_string(std::numeric_limits<Integer>::max()));
    out = static_cast<Integer>(v);
  }
  // USD per million tokens, as price lists have it; kept as picos per token.
  void price(element e, const std::string& path, std::int64_t& out) {
    double usd = 0;
    if (e.get(usd) != simdjson::SUCCESS || !(usd >= 0 && usd <= 1e6))
      return fault(path, "must be USD per million tokens, 0 to 10^6");
    out = std::llround(usd * 1e6);
  }

  ModelTarget target(element e, const std::string& path) {
    ModelTarget t;
    bool named = false;
    members(e, path, [&](std::string_view key, element value, const std::string& at) {
      if (key == "pool") return named = true, text(value, at, t.pool);
      if (key == "model") return text(value, at, t.model);
      if (key == "weight") return number(value, at, t.weight);
      unknown(at);
    });
    if (!named) fault(path, "has no pool");
    return t;
  }
  ModelEntry model(element e, const std::string& path) {
    ModelEntry m;
    bool named = false;
    const auto one = [this](element t, const std::string& p) { return target(t, p); };
    members(e, path, [&](std::string_view key, element value, const std::string& at) {
      if (key == "name") return named = true, text(value, at, m.name);
      if (key == "targets") return rows(value, at, m.targets, one);
      if (key == "fallbacks") return rows(value, at, m.fallbacks, one);
      if (key == "choice") {
        std::string choice;
        text(value, at, choice);
        if (choice == "cheapest") m.choice = TargetChoice::cheapest;
        else if (choice != "weight") fault(at, "must be weight or cheapest");
        return;
      }
      unknown(at);
    });
    if (!named) fault(path, "has no name");
    return m;
  }
  PoolTerms pool(element e, const std::string& path) {
    PoolTerms p;
    bool named = false;
    members(e, path, [&](std::string_view key, element value, const std::string& at) {
      if (key == "name") return named = true, text(value, at, p.name);
      if (key == "external") return boolean(value, at, p.external);
      if (key == "requests_per_minute") return number(value, at, p.requests_per_minute);
      if (key == "tokens_per_minute") return number(value, at, p.tokens_per_minute);
      if (key == "max_in_flight") return number(value, at, p.max_in_flight);
      if (key == "input_price") return price(value, at, p.input_price);
      if (key == "cached_input_price") return price(value, at, p.cached_input_price);
      if (key == "output_price") return price(value, at, p.output_price);
      unknown(at);
    });
    if (!named) fault(path, "has no name");
    return p;
  }
  ClassRule rule(element e, const std::string& path) {
    ClassRule r;
    bool named = false;
    members(e, path, [&](std::string_view key, element value, const std::string& at) {
      if (key == "class_id") return named = true, number(value, at, r.class_id);
      if (key == "may_leave") return boolean(value, at, r.may_leave);
      unknown(at);
    });
    if (!named) fault(path, "has no class_id");
    return r;
  }

  std::string faults_;
  std::size_t count_ = 0;
};

}  // namespace

Result<ModelMap> model_map_from_json(std::string_view json) {
  if (json.size() > kMaxModelBytes) return Error{Code::too_large, "models: more than 4 MiB of JSON", kMaxModelBytes};
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS)
    return Error{Code::invalid_json, std::string("models: not JSON: ") + simdjson::error_message(error), kNoOffset};
  ModelMap map;
  ModelReader reader;
  reader.read(root, map);
  std::string faults = reader.faults();
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
