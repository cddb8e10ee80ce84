#include "engine/kv_transfer.hpp"

#include <simdjson.h>

#include "common/text.hpp"

namespace warmroute::examples {

KvTransfer read_kv_transfer(std::string_view body) {
  KvTransfer transfer;
  if (body.find("kv_transfer_params") == std::string_view::npos) return transfer;
  simdjson::dom::parser parser;
  simdjson::dom::object object, parameters;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS ||
      object["kv_transfer_params"].get(parameters) != simdjson::SUCCESS)
    return transfer;
  const auto is_set = [&](std::string_view name) {
    bool value = false;
    return parameters[name].get(value) == simdjson::SUCCESS && value;
  };
  transfer.sends = is_set("do_remote_decode");
  simdjson::dom::array blocks;
  if (is_set("do_remote_prefill") && parameters["remote_block_ids"].get(blocks) == simdjson::SUCCESS)
    transfer.received_blocks = static_cast<std::int64_t>(blocks.size());
  return transfer;
}

void append_kv_transfer(std::string& answer, std::string_view engine, std::string_view host, std::uint16_t port,
                        std::int64_t blocks) {
  const auto brace = answer.rfind('}');
  if (brace == std::string::npos) return;
  std::string member =
      R"(,"kv_transfer_params":{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[)";
  for (std::int64_t i = 0; i < blocks; ++i) member.append(i == 0 ? "" : ",").append(std::to_string(i));
  member.append("],\"remote_engine_id\":").append(json_quoted(engine));
  member.append(",\"remote_host\":").append(json_quoted(host)).append(",\"remote_port\":").append(std::to_string(port));
  answer.insert(brace, member + "}");
}

}  // namespace warmroute::examples
