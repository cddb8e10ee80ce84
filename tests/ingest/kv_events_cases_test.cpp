// tests/data/kv_event_cases.jsonl: each message gives the events, or the error, that the file says.
#include <gtest/gtest.h>

#include <algorithm>

#include "kv_case_file.hpp"
#include "kv_pack.hpp"

namespace warmroute {
namespace {

using simdjson::dom::element;
using test::KvCase;
using test::Unpacked;

std::string json_of(element e) {
  switch (e.type()) {
    case simdjson::dom::element_type::ARRAY: {
      std::string out;
      for (const element item : e.get_array()) out += (out.empty() ? "" : ",") + json_of(item);
      return '[' + out + ']';
    }
    case simdjson::dom::element_type::STRING: return '"' + std::string(e.get_string().value()) + '"';
    default: return std::string(simdjson::minify(e));
  }
}
std::string member(simdjson::dom::object o, const char* name) {
  element e;
  return o[name].get(e) == simdjson::SUCCESS ? json_of(e) : "null";
}
std::string quoted_or_null(std::string_view text) { return text.empty() ? "null" : '"' + std::string(text) + '"'; }
template <class T>
std::string number_or_null(const std::optional<T>& v) {
  return v ? std::to_string(*v) : "null";
}

// A hash as the file has it: its 64 bits as a decimal, or the bytes that were on the wire.
std::string hash_word(EngineHash id, const Unpacked& wire) {
  if (wire.kind == Unpacked::bytes) return "\"0x" + wire.hex() + '"';
  EXPECT_EQ(wire.bits, static_cast<std::uint64_t>(id));
  return '"' + std::to_string(static_cast<std::uint64_t>(id)) + '"';
}
std::string hash_words(std::span<const EngineHash> ids, const Unpacked* wire) {
  std::string out;
  EXPECT_EQ(ids.size(), wire->items.size());
  for (std::size_t i = 0; i < ids.size(); ++i) out += (i == 0 ? "" : ",") + hash_word(ids[i], wire->items[i]);
  return '[' + out + ']';
}
template <class Values>
std::string numbers(const Values& values) {
  std::string out;
  for (const auto v : values) out += (out.empty() ? "" : ",") + std::to_string(static_cast<std::uint64_t>(v));
  return '[' + out + ']';
}

std::string json_or_null(const Unpacked* value) { return value == nullptr ? "null" : value->json(); }

void expect_generated(simdjson::dom::object gen, std::span<const std::uint64_t> values) {
  const auto number = [&gen](const char* name) {
    std::uint64_t v = 0;
    if (gen[name].get(v) == simdjson::SUCCESS) return v;
    return static_cast<std::uint64_t>(std::stoull(std::string(gen[name].get_string().value())));
  };
  ASSERT_EQ(values.size(), number("count"));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], number("start") + i * number("step"));
}
template <class Values>
std::vector<std::uint64_t> as_u64(const Values& values) {
  std::vector<std::uint64_t> out;
  for (const auto v : values) out.push_back(static_cast<std::uint64_t>(v));
  return out;
}

void expect_ids(const KvEvent& e, simdjson::dom::object want, const Unpacked& wire) {
  if (simdjson::dom::object gen; want["block_hashes_gen"].get(gen) == simdjson::SUCCESS) {
    expect_generated(gen, as_u64(e.ids));
  } else {
    EXPECT_EQ(hash_words(e.ids, wire.field("block_hashes", 1)), member(want, "block_hashes"));
  }
}

void expect_stored(const KvEvent& e, simdjson::dom::object want, const Unpacked& wire) {
  EXPECT_EQ(e.parent ? hash_word(*e.parent, *wire.field("parent_block_hash", 2)) : "null", member(want, "parent"));
  EXPECT_EQ(std::to_string(e.block_size), member(want, "block_size"));
  EXPECT_EQ(quoted_or_null(e.lora_name), member(want, "lora_name"));
  EXPECT_EQ(quoted_or_null(e.salt), member(want, "cache_salt"));
  EXPECT_EQ(quoted_or_null(e.session_id), member(want, "session_id"));
  EXPECT_EQ(quoted_or_null(e.spec_kind), member(want, "kv_cache_spec_kind"));
  EXPECT_EQ(number_or_null(e.lora_id), member(want, "lora_id"));
  EXPECT_EQ(number_or_null(e.sliding_window), member(want, "kv_cache_spec_sliding_window"));
  EXPECT_EQ(json_or_null(wire.kind == Unpacked::map ? wire.find("lookahead_token_ids") : nullptr),
            member(want, "lookahead_token_ids"));
  Unpacked extra;
  if (std::string_view view = e.extra_keys; !view.empty()) extra = test::unpack(view);
  EXPECT_EQ(extra.json(), member(want, "extra_keys"));
  EXPECT_EQ(e.eagle, member(want, "eagle") == "true");
  EXPECT_EQ(e.token_ids.empty(), member(want, "tokenless") == "true");
  if (simdjson::dom::object gen; want["token_ids_gen"].get(gen) == simdjson::SUCCESS) {
    expect_generated(gen, as_u64(e.token_ids));
  } else if (e.eagle) {
    EXPECT_EQ(numbers(e.token_ids), member(want, "token_ids_flat"));
    EXPECT_EQ(wire.field("token_ids", 3)->json(), member(want, "token_ids"));
  } else {
    EXPECT_EQ(numbers(e.token_ids), member(want, "token_ids"));
  }
  EXPECT_EQ(e.use == KvUse::placeholder, e.token_ids.empty() && !e.ids.empty());
}

void expect_event(const KvEvent& e, simdjson::dom::object want) {
  std::string_view view = e.wire;
  const Unpacked wire = test::unpack(view);
  EXPECT_TRUE(view.empty());
  constexpr std::array<std::string_view, 3> kTypes = {"\"stored\"", "\"removed\"", "\"cleared\""};
  ASSERT_EQ(kTypes[static_cast<std::size_t>(e.type)], member(want, "type"));
  if (e.type == KvEventType::cleared) return;
  expect_ids(e, want, wire);
  EXPECT_EQ(quoted_or_null(e.medium), member(want, "medium"));
  EXPECT_EQ(number_or_null(e.group_idx), member(want, "group_idx"));
  EXPECT_EQ(quoted_or_null(e.locality), member(want, "locality"));
  EXPECT_EQ(quoted_or_null(e.ownership), member(want, "ownership"));
  if (e.type == KvEventType::stored) expect_stored(e, want, wire);
}

void expect_fault(KvFault got, simdjson::dom::object line, simdjson::dom::object at) {
  std::vector<std::string> good = {member(at, "error")};
  if (simdjson::dom::array others; line["error_any_of"].get(others) == simdjson::SUCCESS) {
    for (const std::string_view other : others) good.push_back('"' + std::string(other) + '"');
  }
  EXPECT_NE(std::find(good.begin(), good.end(), '"' + std::string(kv_fault_name(got)) + '"'), good.end())
      << kv_fault_name(got) << " instead of " << good.front();
}

void expect_batch(const KvBatch& batch, simdjson::dom::object line, simdjson::dom::object want) {
  EXPECT_DOUBLE_EQ(batch.time_s, want["ts"].get_double().value());
  EXPECT_EQ(number_or_null(batch.dp_rank), member(want, "dp_rank"));
  if (simdjson::dom::object gen; want["events_gen"].get(gen) == simdjson::SUCCESS) {
    ASSERT_EQ(batch.events.size(), gen["count"].get_uint64().value());
    const std::uint64_t start = std::stoull(std::string(gen["block_hash_start"].get_string().value()));
    for (std::size_t i = 0; i < batch.events.size(); ++i) {
      const KvEvent& e = batch.events[i];
      ASSERT_TRUE(e.type == KvEventType::removed && e.ids.size() == 1 && e.index == i);
      ASSERT_EQ(static_cast<std::uint64_t>(e.ids[0]), start + i);
      ASSERT_TRUE(e.medium == "GPU" && e.group_idx == 0u);
    }
    return;
  }
  std::size_t i = 0;
  for (const simdjson::dom::object event : want["events"].get_array()) {
    ASSERT_LT(i, batch.events.size());
    SCOPED_TRACE("event " + std::to_string(i));
    expect_event(batch.events[i++], event);
  }
  EXPECT_EQ(batch.events.size(), i);
  i = 0;
  if (simdjson::dom::array rejected; want["rejected"].get(rejected) == simdjson::SUCCESS) {
    for (const simdjson::dom::object r : rejected) {
      ASSERT_LT(i, batch.rejected.size());
      EXPECT_EQ(batch.rejected[i].index, r["index"].get_uint64().value());
      expect_fault(batch.rejected[i++].fault, line, r);
    }
  }
  EXPECT_EQ(batch.rejected.size(), i);
  EXPECT_EQ(batch.rejected_count, i);
}

void expect_block_keys(const KvBatch& batch, simdjson::dom::object line) {
  simdjson::dom::array keys;
  if (line["block_keys"].get(keys) != simdjson::SUCCESS) return;
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_TRUE(batch.events[0].byte_ids);
  std::string got;
  for (const EngineHash id : batch.events[0].ids) {
    got += (got.empty() ? "\"" : ",\"") + std::to_string(static_cast<std::uint64_t>(id)) + '"';
  }
  EXPECT_EQ('[' + got + ']', member(line, "block_keys"));
}

void expect_case(const KvCase& c, simdjson::dom::object line, KvEventDecoder& decoder) {
  std::string_view scope;
  const bool refused = line["scope"].get(scope) == simdjson::SUCCESS && scope == "message";
  KvFault fault = KvFault::none;
  const Result<KvMessage> message = read_kv_frames(c.socket, c.views(), &fault);
  if (!message) {
    ASSERT_TRUE(refused) << kv_fault_name(fault);
    return expect_fault(fault, line, line);
  }
  if (message->replay_end) {
    EXPECT_EQ(member(line, "kind"), "\"replay_end\"");
    return;
  }
  const auto batch = decoder.decode(message->payload, {});
  EXPECT_EQ(batch.ok(), decoder.fault() == KvFault::none);
  if (!batch) {
    EXPECT_LE(batch.error().offset, message->payload.size());
    EXPECT_EQ(batch.error().message.rfind(std::string(kv_fault_name(decoder.fault())) + ": ", 0), 0u);
    ASSERT_TRUE(refused) << batch.error().message;
    return expect_fault(decoder.fault(), line, line);
  }
  ASSERT_FALSE(refused);
  const simdjson::dom::object want = line["expect"].get_object();
  EXPECT_EQ(message->has_topic, member(want, "topic") != "null");
  if (message->has_topic) {
    EXPECT_EQ('"' + std::string(message->topic) + '"', member(want, "topic"));
  }
  EXPECT_EQ(std::to_string(message->seq), member(want, "seq"));
  expect_batch(*batch, line, want);
  expect_block_keys(*batch, line);
}

TEST(KvEventCases, EveryMessageGivesWhatTheFileSays) {
  const auto cases = test::kv_cases();
  EXPECT_GE(cases.size(), 179u);
  simdjson::dom::parser json;
  KvEventDecoder reused;
  for (const KvCase& c : cases) {
    const simdjson::dom::object line = json.parse(c.line).get_object();
    SCOPED_TRACE(c.id + ": " + std::string(line["why"].get_string().value()));
    KvEventDecoder fresh;
    expect_case(c, line, fresh);
    expect_case(c, line, reused);
    reused.reset();
  }
}

TEST(KvEventCases, GeneratedPayloadsAreAsLongAsTheEnginesOwn) {
  simdjson::dom::parser json;
  std::size_t checked = 0;
  for (const KvCase& c : test::kv_cases()) {
    std::uint64_t bytes = 0;
    if (json.parse(c.line)["payload_bytes"].get(bytes) != simdjson::SUCCESS) continue;
    EXPECT_EQ(c.frames.back().size(), bytes) << c.id;
    ++checked;
  }
  EXPECT_EQ(checked, 3u);
}

}  // namespace
}  // namespace warmroute
