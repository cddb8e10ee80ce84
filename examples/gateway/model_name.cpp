// One member, and one segment of a path, see model_name.hpp.
#include "gateway/model_name.hpp"

#include <simdjson.h>

#include <utility>
#include <vector>

#include "common/text.hpp"

namespace warmroute::gateway {

namespace {

/// shape: begin and size of every value of an outermost member `model`, in order; with the place behind the brace when there is none.
std::vector<std::pair<std::size_t, std::size_t>> places_of_model(std::string_view body) {
  namespace od = simdjson::ondemand;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  const simdjson::padded_string padded(body);
  od::parser parser;
  od::document document;
  od::object object;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return places;
  for (auto one : object) {
    od::field field;
    std::string_view key;
    if (std::move(one).get(field) != simdjson::SUCCESS) break;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) break;
    if (key != "model") continue;
    std::string_view raw = field.value().raw_json_token();
    raw = raw.substr(0, raw.rfind('"') + 1);
    if (!raw.empty()) places.emplace_back(static_cast<std::size_t>(raw.data() - padded.data()), raw.size());
  }
  return places;
}

std::string url_encoded(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 15];
    }
  }
  return out;
}

}  // namespace

std::string with_model(std::string_view body, std::string_view model) {
  const std::string value = examples::json_quoted(model);
  const auto places = places_of_model(body);
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, size] : places) {
    out.append(body.substr(at, begin - at)).append(value);
    at = begin + size;
  }
  if (places.empty()) {
    const auto brace = body.find('{');
    if (brace == std::string_view::npos) return std::string(body);
    const auto next = body.find_first_not_of(" \t\r\n", brace + 1);
    const bool alone = next != std::string_view::npos && body[next] == '}';
    out.append(body.substr(0, brace + 1)).append("\"model\":").append(value).append(alone ? "" : ",");
    at = brace + 1;
  }
  return out.append(body.substr(at));
}

std::string upstream_target(std::string_view target, const Target& read, std::string_view model,
                            std::string_view base) {
  std::string out(target);
  if (read.model_size != 0 && !model.empty() && model != read.model)
    out.replace(read.model_at, read.model_size, url_encoded(model));
  if (base.empty()) return out;
  const bool versioned = out.starts_with("/v1/");
  return std::string(base) + out.substr(versioned ? 3 : 0);
}

}  // namespace warmroute::gateway
