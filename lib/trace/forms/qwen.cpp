// Qwen-Bailian's form: JSON lines, seconds, one id per 16-token block, each chat with the one it continues.
// The ids are of a block's content alone, as far as its description goes; chained they stand for all before it, too, and where they did
// already nothing changes. A conversation is named by the chat at its root, so the roots of the last chats are remembered.
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/forms/form.hpp"
#include "trace/forms/json_fields.hpp"

namespace warmroute::trace {
namespace {

constexpr std::int64_t kQwenBlockTokens = 16;

class QwenForm final : public LineForm {
 public:
  explicit QwenForm(const TraceLimits& limits) : limits_(limits) {}

 protected:
  Result<bool> read(std::string_view line, TraceRecord& record) override {
    auto object = parse_object(parser_, line);
    if (!object) return object.error();
    SeenFields seen;
    std::int64_t chat = -1, parent = -1;
    for (const simdjson::dom::key_value_pair member : *object) {
      if (member.value.is_null()) continue;
      auto status = member.key == "chat_id"          ? read_chat(member.key, member.value, chat)
                    : member.key == "parent_chat_id" ? read_chat(member.key, member.value, parent)
                                                     : read_member(member.key, member.value, record, seen);
      if (!status) return status.error();
    }
    if (auto complete = seen.complete(); !complete) return complete.error();
    const auto blocks = static_cast<std::size_t>((record.input_tokens + kQwenBlockTokens - 1) / kQwenBlockTokens);
    if (record.blocks.size() > blocks) record.blocks.resize(blocks);  // the length is what counts
    std::uint64_t before = 0;
    for (std::uint64_t& id : record.blocks) before = id = chained(before, id);
    record.block_tokens = kQwenBlockTokens;
    if (chat >= 0) record.session = session_of(static_cast<std::uint64_t>(root_of(chat, parent)));
    return true;
  }

 private:
  static Status read_chat(std::string_view key, JsonElement value, std::int64_t& out) {
    if (value.get(out) == simdjson::SUCCESS && out >= -1) return {};
    return field_error(Code::wrong_type, key, "is no number of a chat (-1: none)");
  }

  Status read_member(std::string_view key, JsonElement value, TraceRecord& record, SeenFields& seen) const {
    const auto common = read_common(key, value, limits_.max_tokens, 1e6, false, record, seen);
    if (!common) return common.error();
    if (*common) return {};
    if (key == "hash_ids") {
      record.blocks.clear();
      return json_ids(key, value, limits_.max_blocks, record.blocks);
    } else if (key == "type") {
      return json_text(key, value, record.request_class);
    }
    return {};
  }

  // A parent that was never seen, or is forgotten, is a root as good as any.
  std::int64_t root_of(std::int64_t chat, std::int64_t parent) {
    std::int64_t root = chat;
    if (parent >= 0) {
      root = parent;
      for (const auto* chats : {&younger_, &older_}) {
        if (const auto it = chats->find(parent); it != chats->end()) {
          root = it->second;
          break;
        }
      }
    }
    if (younger_.size() >= limits_.max_chats / 2) {  // the older half goes at once
      older_ = std::move(younger_);
      younger_.clear();
    }
    younger_[chat] = root;
    return root;
  }

  TraceLimits limits_;
  simdjson::dom::parser parser_;
  absl::flat_hash_map<std::int64_t, std::int64_t> younger_, older_;  // chat to root
};

}  // namespace

std::unique_ptr<Form> make_qwen_form(const TraceLimits& limits) { return std::make_unique<QwenForm>(limits); }

}  // namespace warmroute::trace
