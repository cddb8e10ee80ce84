// Members of bodies, see body_edit.hpp.
#include "gateway/body_edit.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

namespace warmroute::gateway {

namespace {

struct BodyMember {
  std::string name;
  std::size_t begin = 0;  // of its key's quote
};

/// shape: the outermost members, in their order.
std::vector<BodyMember> members_of(const simdjson::padded_string& padded) {
  namespace od = simdjson::ondemand;
  std::vector<BodyMember> members;
  od::parser parser;
  od::document document;
  od::object object;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return members;
  for (auto one : object) {
    od::field field;
    if (std::move(one).get(field) != simdjson::SUCCESS) break;
    const char* const key = field.key().raw();
    std::string_view name;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) break;
    members.push_back({std::string(name), static_cast<std::size_t>(key - padded.data()) - 1});
  }
  return members;
}

/// returns: the object without some members, and with others behind the rest.
std::string edited(std::string_view body, std::initializer_list<std::string_view> gone, std::string_view more) {
  const simdjson::padded_string padded(body);
  const auto members = members_of(padded);
  if (members.empty() && more.empty()) return std::string(body);  // nothing to take out; it may be no object at all
  std::string out = "{";
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (std::find(gone.begin(), gone.end(), members[i].name) != gone.end()) continue;
    const std::size_t end = i + 1 < members.size() ? members[i + 1].begin : body.rfind('}');
    std::string_view text = body.substr(members[i].begin, end - members[i].begin);
    if (i + 1 < members.size()) text = text.substr(0, text.rfind(','));
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    out.append(out.size() > 1 ? "," : "").append(text);
  }
  if (!more.empty()) out.append(out.size() > 1 ? "," : "").append(more);
  return out + "}";
}

}  // namespace

std::string prefill_body(std::string_view body) {
  return edited(body,
                {"stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of",
                 kTransferMember},
                R"("stream":false,"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,)"
                R"("do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,)"
                R"("remote_port":null})");
}

std::string decode_body(std::string_view body, std::string_view parameters) {
  std::string more;
  if (!parameters.empty()) more.append("\"").append(kTransferMember).append("\":").append(parameters);
  return edited(body, {kTransferMember}, more);
}

PrefillAnswer read_prefill_answer(std::string_view body) {
  PrefillAnswer answer;
  simdjson::dom::parser parser;
  simdjson::dom::object object, parameters;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) return answer;
  if (object[kTransferMember].get(parameters) == simdjson::SUCCESS) answer.parameters = simdjson::minify(parameters);
  const auto cached = object["usage"]["prompt_tokens_details"]["cached_tokens"];
  if (cached.get(answer.cached_tokens) != simdjson::SUCCESS) answer.cached_tokens = -1;
  return answer;
}

}  // namespace warmroute::gateway
