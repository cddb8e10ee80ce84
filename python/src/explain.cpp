// Explanation: a table for people, a dict for machines, columns as NumPy arrays for experiments.
#include "warmroute/route/explain.hpp"

#include <functional>

#include "decision.hpp"

namespace warmroute::python {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string milliseconds_text(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ns) / 1e6);
  return text.data();
}

std::int64_t total_cached(const CandidateExplanation& c) {
  std::int64_t sum = 0;
  for (const std::int64_t tokens : c.cached_tokens) sum += tokens;
  return sum;
}

std::string to_html(const Explanation& e) {
  const std::string text = to_text(e);
  std::string out = "<div><p>";
  for (const char c : escaped(text.substr(0, text.find("\nreplica"))))
    out.append(c == '\n' ? "<br>" : std::string(1, c));
  out += "</p><table><thead><tr>";
  for (const auto* title : {"replica", "cached", "in flight", "wait", "prefill", "miss", "-hot", "stall", "decode",
                            "tail", "evict", "full", "transfer", "-session", "cost ms", ""}) {
    out.append("<th>").append(title).append("</th>");
  }
  out += "</tr></thead><tbody>";
  for (const auto& c : e.candidates) {
    const auto cell = [&](const std::string& content) { out.append("<td>").append(content).append("</td>"); };
    out += c.chosen ? "<tr style=\"font-weight:bold\">" : "<tr>";
    cell(escaped(c.dp_rank == 0 ? c.name : c.name + "/" + std::to_string(c.dp_rank)));
    cell(std::to_string(total_cached(c)));
    cell(std::to_string(c.load.requests));
    for (const std::int64_t ns :
         {c.cost.wait, c.cost.prefill, c.cost.miss, c.cost.rebate, c.cost.stall, c.cost.decode, c.cost.tail,
          c.cost.evict, c.cost.full, c.cost.transfer, c.cost.session, c.cost.total}) {
      cell(milliseconds_text(ns));
    }
    cell(c.chosen ? "chosen" : escaped(c.lost_because));
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

struct Column {
  const char* name;
  std::int64_t (*of)(const CandidateExplanation&);
};
using C = CandidateExplanation;
constexpr std::array kColumns{
    Column{"device_tokens", [](const C& c) { return c.cached_tokens[0]; }},
    Column{"host_tokens", [](const C& c) { return c.cached_tokens[1]; }},
    Column{"disk_tokens", [](const C& c) { return c.cached_tokens[2]; }},
    Column{"shared_tokens", [](const C& c) { return c.cached_tokens[3]; }},
    Column{"cached_tokens", total_cached},
    Column{"requests", [](const C& c) { return c.load.requests; }},
    Column{"decoding", [](const C& c) { return c.load.decoding; }},
    Column{"pending_tokens", [](const C& c) { return c.load.pending_tokens; }},
    Column{"context_tokens", [](const C& c) { return c.load.context_tokens; }},
    Column{"wait_ns", [](const C& c) { return c.cost.wait; }},
    Column{"prefill_ns", [](const C& c) { return c.cost.prefill; }},
    Column{"miss_ns", [](const C& c) { return c.cost.miss; }},
    Column{"rebate_ns", [](const C& c) { return c.cost.rebate; }},
    Column{"stall_ns", [](const C& c) { return c.cost.stall; }},
    Column{"decode_ns", [](const C& c) { return c.cost.decode; }},
    Column{"tail_ns", [](const C& c) { return c.cost.tail; }},
    Column{"evict_ns", [](const C& c) { return c.cost.evict; }},
    Column{"full_ns", [](const C& c) { return c.cost.full; }},
    Column{"transfer_ns", [](const C& c) { return c.cost.transfer; }},
    Column{"session_ns", [](const C& c) { return c.cost.session; }},
    Column{"total_ns", [](const C& c) { return c.cost.total; }},
};

using Columns = py::typing::Dict<py::str, py::array_t<std::int64_t>>;

Columns columns(const Explanation& e, bool eligible_only) {
  std::vector<const C*> rows;
  for (const auto& c : e.candidates) {
    if (c.eligible || !eligible_only) rows.push_back(&c);
  }
  py::dict out;
  const auto add = [&](const char* name, const auto& of) {
    py::array_t<std::int64_t> values(static_cast<py::ssize_t>(rows.size()));
    std::int64_t* at = values.mutable_data();
    for (const C* c : rows) *at++ = of(*c);
    out[name] = values;
  };
  add("replica", [](const C& c) { return static_cast<std::int64_t>(replica_number(c.id)); });
  for (const Column& column : kColumns) add(column.name, column.of);
  return Columns(out);
}

}  // namespace

void bind_explain(py::module_& m) {
  py::class_<Explanation>(
      m, "Explanation",
      "Why a decision fell as it did: every candidate with its match, its terms in time, and why it lost.\n\n"
      "str() and a notebook show a table; to_dict() and columns() are for programs. No text, ids or hashes in it.")
      .def_readonly("decision", &Explanation::decision, "What peek would answer now.")
      .def_readonly("pool", &Explanation::pool)
      .def_property_readonly("algorithm", [](const Explanation& e) { return std::string(e.algorithm); })
      .def_readonly("blocks", &Explanation::blocks, "Whole blocks of the prompt.")
      .def_readonly("shared_requests", &Explanation::shared_requests,
                    "Requests in flight that share the start of this prompt.")
      .def_property_readonly(
          "no_match", [](const Explanation& e) { return std::string(e.no_match); },
          "Why nobody holds any of it; '' when somebody does.")
      .def_property_readonly(
          "names",
          [](const Explanation& e) {
            std::vector<std::string> names;
            for (const auto& c : e.candidates)
              names.push_back(c.dp_rank == 0 ? c.name : c.name + "/" + std::to_string(c.dp_rank));
            return names;
          },
          "Of all candidates, in the order of columns(eligible_only=False).")
      .def("columns", &columns, py::arg("eligible_only") = true,
           "The candidates as int64 arrays: 'replica' (their ints), *_tokens, requests, *_ns; 'total_ns' is what "
           "decides.")
      .def("to_json", &to_json, "One JSON object, times in milliseconds.")
      .def(
          "to_dict",
          [](const Explanation& e) {
            return py::typing::Dict<py::str, py::object>(py::module_::import("json").attr("loads")(to_json(e)));
          },
          "to_json, read.")
      .def("__str__", [](const Explanation& e) { return to_text(e); })
      .def("_repr_html_", &to_html)
      .def("__repr__", [](const Explanation& e) {
        return "<warmroute.Explanation: " + std::string(verdict_name(e.decision.verdict)) + ", " +
               std::to_string(e.candidates.size()) + " candidates>";
      });
}

}  // namespace warmroute::python
