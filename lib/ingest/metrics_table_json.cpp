// One list of members drives reading and writing, so that the two cannot drift apart.
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include <simdjson.h>

#include "text/json_escape.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMaxBytes = 256 * 1024;
constexpr std::array<std::string_view, kEngineFieldCount> kFieldNames{
    "waiting",      "running",     "kv_usage",     "prefix_hits",  "prefix_queries", "prefix_misses", "prefix_hit_rate",
    "block_tokens", "block_count", "lora_running", "lora_waiting", "lora_max",       "ttft",          "waiting_tokens"};
constexpr std::array<std::string_view, 3> kCombineNames{"max", "sum", "newest"};
constexpr std::array<std::string_view, 3> kUnitNames{"unknown", "tokens", "blocks"};

void write_text(std::string_view value, std::string& out) { text::append_json_string(out, value); }

bool read_text(std::string& into, element e) {
  std::string_view text;
  if (e.get(text) != simdjson::SUCCESS) return false;
  into = text;
  return true;
}

template <class Owner>
struct Member {
  std::string_view name;
  std::string_view wants;  // for messages
  bool (*read)(Owner&, element);
  void (*write)(const Owner&, std::string&);
};

template <class Owner, auto Field>
constexpr Member<Owner> text_member(std::string_view name) {
  return {name, "a string", [](Owner& o, element e) { return read_text(o.*Field, e); },
          [](const Owner& o, std::string& out) { write_text(o.*Field, out); }};
}

template <auto Field, auto& Names>
constexpr Member<EngineMetricRow> enum_member(std::string_view name, std::string_view wants) {
  return {name, wants,
          [](EngineMetricRow& row, element e) {
            std::string_view text;
            if (e.get(text) != simdjson::SUCCESS) return false;
            for (std::size_t i = 0; i < Names.size(); ++i) {
              if (Names[i] != text) continue;
              row.*Field = static_cast<std::remove_reference_t<decltype(row.*Field)>>(i);
              return true;
            }
            return false;
          },
          [](const EngineMetricRow& row, std::string& out) {
            const auto i = static_cast<std::size_t>(row.*Field);
            write_text(i < Names.size() ? Names[i] : "?", out);
          }};
}

bool read_where(EngineMetricRow& row, element e) {
  simdjson::dom::object object;
  if (e.get(object) != simdjson::SUCCESS) return false;
  row.where.clear();
  for (const auto field : object) {
    std::string_view value;
    if (field.value.get(value) != simdjson::SUCCESS) return false;
    row.where.emplace_back(field.key, value);
  }
  return true;
}
void write_where(const EngineMetricRow& row, std::string& out) {
  out += '{';
  for (const auto& [label, value] : row.where) {
    if (out.back() != '{') out += ", ";
    write_text(label, out);
    out += ": ";
    write_text(value, out);
  }
  out += '}';
}

bool read_pair(EngineMetricRow& row, element e) {
  std::uint64_t value = 0;
  if (e.get(value) != simdjson::SUCCESS || value > std::numeric_limits<std::uint8_t>::max()) return false;
  row.pair = static_cast<std::uint8_t>(value);
  return true;
}
void write_pair(const EngineMetricRow& row, std::string& out) { out += std::to_string(row.pair); }

using Row = EngineMetricRow;
constexpr Member<Row> kRowMembers[]{
    enum_member<&Row::field, kFieldNames>(
        "field",
        "one of waiting, running, kv_usage, prefix_hits, prefix_queries, prefix_misses, prefix_hit_rate, block_tokens, "
        "block_count, lora_running, lora_waiting, lora_max, ttft, waiting_tokens"),
    text_member<Row, &Row::name>("name"),
    {"where", "an object of strings", read_where, write_where},
    text_member<Row, &Row::value_label>("value_label"),
    enum_member<&Row::combine, kCombineNames>("combine", "max, sum or newest"),
    text_member<Row, &Row::split_label>("split_label"),
    text_member<Row, &Row::split_total>("split_total"),
    {"pair", "an integer from 0 to 255", read_pair, write_pair},
    enum_member<&Row::unit, kUnitNames>("unit", "unknown, tokens or blocks"),
};

class Reader {
 public:
  template <class Owner, std::size_t Count>
  void members(Owner& owner, simdjson::dom::object object, const Member<Owner> (&known)[Count],
               const std::string& path) {
    for (const auto field : object) {
      const Member<Owner>* found = nullptr;
      for (const Member<Owner>& member : known) {
        if (member.name == field.key) found = &member;
      }
      if (found == nullptr) fault(path + std::string(field.key), "is not a member");
      else if (!found->read(owner, field.value))
        fault(path + std::string(field.key), std::string("must be ").append(found->wants));
    }
  }
  void fault(std::string_view where, std::string_view what) {
    faults_.append(faults_.empty() ? "" : "; ").append(where).append(" ").append(what);
  }
  [[nodiscard]] std::string& faults() noexcept { return faults_; }

  void rows(EngineMetricsTable& table, element e) {
    simdjson::dom::array array;
    if (e.get(array) != simdjson::SUCCESS) return fault("rows", "must be an array of objects");
    table.rows.clear();
    for (const element entry : array) {
      const std::string path = "rows[" + std::to_string(table.rows.size()) + "]";
      Row& row = table.rows.emplace_back();
      simdjson::dom::object object;
      if (entry.get(object) != simdjson::SUCCESS) {
        fault(path, "must be an object");
        continue;
      }
      if (element there; object["field"].get(there) != simdjson::SUCCESS) fault(path, "must have a field");
      members(row, object, kRowMembers, path + ".");
    }
  }

 private:
  std::string faults_;
};

bool read_prefixes(EngineMetricsTable& table, element e) {
  simdjson::dom::array array;
  if (e.get(array) != simdjson::SUCCESS) return false;
  table.prefixes.clear();
  for (const element entry : array) {
    if (!read_text(table.prefixes.emplace_back(), entry)) return false;
  }
  return true;
}
void write_prefixes(const EngineMetricsTable& table, std::string& out) {
  out += '[';
  for (const std::string& prefix : table.prefixes) {
    if (out.back() != '[') out += ", ";
    write_text(prefix, out);
  }
  out += ']';
}

void write_rows(const EngineMetricsTable& table, std::string& out) {
  out += '[';
  for (const Row& row : table.rows) {
    out += out.back() == '[' ? "\n    {" : ",\n    {";
    for (const Member<Row>& member : kRowMembers) {
      std::string now;
      std::string unset;
      member.write(row, now);
      member.write(Row{}, unset);
      if (now == unset && member.name != "field") continue;
      if (out.back() != '{') out += ", ";
      out.append("\"").append(member.name).append("\": ").append(now);
    }
    out += '}';
  }
  out += "\n  ]";
}

using Table = EngineMetricsTable;
// Rows are read apart from the others: their faults have paths of their own.
bool read_rows_later(Table&, element) { return true; }
constexpr Member<Table> kTableMembers[]{
    text_member<Table, &Table::engine>("engine"),
    {"prefixes", "an array of strings", read_prefixes, write_prefixes},
    text_member<Table, &Table::rank_label>("rank_label"),
    text_member<Table, &Table::model_label>("model_label"),
    {"rows", "an array of objects", read_rows_later, write_rows},
};

}  // namespace

Result<EngineMetricsTable> engine_table_from_json(std::string_view json) {
  if (json.size() > kMaxBytes) {
    return Error{Code::too_large, "engine metrics table: more than 256 KiB of JSON", kMaxBytes};
  }
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS) {
    return Error{Code::invalid_json, std::string("engine metrics table: not JSON: ") + simdjson::error_message(error),
                 kNoOffset};
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return Error{Code::not_an_object, "engine metrics table: the JSON is not an object", 0};
  }
  EngineMetricsTable table;
  Reader reader;
  reader.members(table, object, kTableMembers, "");
  if (element rows; object["rows"].get(rows) == simdjson::SUCCESS) reader.rows(table, rows);
  if (const auto valid = validate(table); !valid) {
    constexpr std::string_view kPrefix = "engine metrics table: ";
    reader.faults().append(reader.faults().empty() ? "" : "; ").append(valid.error().message.substr(kPrefix.size()));
  }
  if (!reader.faults().empty()) {
    return Error{Code::invalid_argument, "engine metrics table: " + reader.faults(), kNoOffset};
  }
  return table;
}

std::string engine_table_to_json(const EngineMetricsTable& table) {
  std::string out = "{";
  for (const Member<Table>& member : kTableMembers) {
    out.append(out.size() == 1 ? "\n  \"" : ",\n  \"").append(member.name).append("\": ");
    member.write(table, out);
  }
  return out + "\n}\n";
}

}  // namespace warmroute
