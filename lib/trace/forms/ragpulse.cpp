// RAGPulse's form: JSON lines, seconds as text, not in order; a prompt is a row of pieces (system prompt, passages, history, ...), each named
// by an id and of its own length, which other files tell. It is cut into blocks of 16 tokens: a block is the same where all pieces up to
// its last token are.
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/forms/form.hpp"
#include "trace/forms/json_fields.hpp"
#include "trace/forms/line_source.hpp"

namespace warmroute::trace {
namespace {

constexpr std::int64_t kRagBlockTokens = 16;
constexpr std::size_t kMostPieces = 1'000'000;  // of which the length is known; the published set has 27,000
using Lengths = absl::flat_hash_map<std::uint64_t, std::int64_t>;

class RagPulseForm final : public LineForm {
 public:
  RagPulseForm(const TraceLimits& limits, Lengths lengths) : limits_(limits), lengths_(std::move(lengths)) {}

 protected:
  Result<bool> read(std::string_view line, TraceRecord& record) override {
    auto object = parse_object(parser_, line);
    if (!object) return object.error();
    SeenFields seen;
    pieces_.clear();
    for (const simdjson::dom::key_value_pair member : *object) {
      if (member.value.is_null()) continue;
      if (auto status = read_member(member.key, member.value, record, seen); !status) return status.error();
    }
    if (auto complete = seen.complete(); !complete) return complete.error();
    cut(record);
    return true;
  }

 private:
  Status read_member(std::string_view key, JsonElement value, TraceRecord& record, SeenFields& seen) {
    const auto common = read_common(key, value, limits_.max_tokens, 1e6, true, record, seen);
    if (!common) return common.error();
    if (*common) return {};
    if (key == "session_id") {
      auto session = json_session(key, value);
      if (!session) return session.error();
      record.session = *session;
    } else if (key == "hash_ids") {
      simdjson::dom::object kinds;
      if (value.get(kinds) != simdjson::SUCCESS)
        return field_error(Code::wrong_type, key,
                           "is not an object of lists of pieces; is this another form (--format)?");
      pieces_.clear();
      for (const simdjson::dom::key_value_pair kind : kinds) {
        if (auto status = json_ids(kind.key, kind.value, limits_.max_blocks, pieces_); !status) return status;
      }
    }
    return {};
  }

  // The input's length is what counts: what the pieces lack is the prompt's own end, what they have too much is cut.
  void cut(TraceRecord& record) const {
    record.block_tokens = kRagBlockTokens;
    if (pieces_.empty()) return;
    const auto most = std::min(record.input_tokens / kRagBlockTokens, limits_.max_blocks);
    const auto even = static_cast<std::int64_t>(record.input_tokens / static_cast<std::int64_t>(pieces_.size()));
    std::uint64_t chain = 0;
    std::int64_t end = 0;  // of the pieces so far, in tokens
    for (const std::uint64_t piece : pieces_) {
      const auto known = lengths_.find(piece);
      chain = chained(chain, piece);
      end += known == lengths_.end() ? even : known->second;
      while (static_cast<std::int64_t>(record.blocks.size()) < most &&
             (static_cast<std::int64_t>(record.blocks.size()) + 1) * kRagBlockTokens <= end)
        record.blocks.push_back(chained(chain, record.blocks.size()));
    }
  }

  TraceLimits limits_;
  Lengths lengths_;
  simdjson::dom::parser parser_;
  std::vector<std::uint64_t> pieces_;
};

Status read_lengths(const std::string& path, const TraceLimits& limits, Lengths& lengths) {
  auto file = open_gz(path, "rb");
  if (!file) return {};  // it need not be there
  LineSource source(path, *file, limits.max_line_bytes);
  simdjson::dom::parser parser;
  while (true) {
    auto more = source.next();
    if (!more) return more.error();
    if (!*more) return {};
    if (source.line().find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto object = parse_object(parser, source.line());
    if (!object) return source.here(object.error());
    std::uint64_t id = 0;
    std::int64_t length = -1;
    for (const simdjson::dom::key_value_pair member : *object) {
      if (member.key != "token_length") {
        std::uint64_t number = 0;
        if (member.value.get(number) == simdjson::SUCCESS) id = number;
        continue;
      }
      auto count = json_count(member.key, member.value, limits.max_tokens);
      if (!count) return source.here(count.error());
      length = *count;
    }
    if (length < 0) return source.here(field_error(Code::missing_field, "token_length", "is missing"));
    if (lengths.size() >= kMostPieces)
      return source.here({Code::too_large, "more pieces than this library takes (1,000,000)", kNoOffset});
    lengths[id] = length;
  }
}

}  // namespace

Result<std::unique_ptr<Form>> make_ragpulse_form(const TraceLimits& limits, const std::string& path) {
  constexpr std::array<const char*, 5> kNeighbours{"1_sys_prompt.jsonl", "2_passages.jsonl", "3_history.jsonl",
                                                   "4_user_input.jsonl", "5_web_search.jsonl"};
  Lengths lengths;
  if (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    for (const char* name : kNeighbours) {
      if (auto read = read_lengths(folder + name, limits, lengths); !read) return read.error();
    }
  }
  return std::unique_ptr<Form>{std::make_unique<RagPulseForm>(limits, std::move(lengths))};
}

}  // namespace warmroute::trace
