// An explanation as a table for people and as JSON for machines. Names come from operators and are escaped.
#include "warmroute/route/explain.hpp"

#include <array>
#include <cstdio>
#include <string>

#include "text/json_escape.hpp"

namespace warmroute {
namespace {

std::string milliseconds_text(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ns) / 1e6);
  return text.data();
}

void append_cell(std::string& out, std::string_view text, std::size_t width, bool left = false) {
  const std::size_t pad = text.size() < width ? width - text.size() : 0;
  if (left) out.append(text).append(pad, ' ');
  else out.append(pad, ' ').append(text);
  out += ' ';
}

std::string head(const Explanation& e) {
  const Decision& d = e.decision;
  std::string out = "pool '" + e.pool + "', rule ";
  out.append(e.algorithm).append(": ").append(verdict_name(d.verdict));
  if (d.routed()) out.append(" (").append(reason_name(d.reason)).append(")");
  out += "\nprompt: " + std::to_string(d.input_tokens.value) + " tokens in " + std::to_string(e.blocks) + " blocks";
  if (e.shared_requests > 1) out += ", start shared by " + std::to_string(e.shared_requests) + " requests in flight";
  if (d.routed()) {
    out += "; " + std::to_string(d.total_cached().value) + " cached there, " +
           std::to_string(d.uncached_tokens().value) + " to prefill in " + milliseconds_text(d.expected_prefill.value) +
           " ms after " + milliseconds_text(d.expected_wait.value) + " ms of waiting";
  }
  if (!e.no_match.empty()) out.append("\nno match: ").append(e.no_match);
  return out + "\n";
}

// One part a line, its terms by name.
std::string pair_text(const Explanation& e) {
  const PairExplanation& x = e.pair;
  const auto ms = [](const char* name, std::int64_t ns) {
    return std::string(" ").append(name).append(" ").append(milliseconds_text(ns));
  };
  const auto prompt = [&](const PromptTerms& t) {
    return ms("wait", t.cost.wait) + ms("prefill", t.cost.prefill) + ms("miss", t.cost.miss) +
           ms("-hot", t.cost.rebate) + ms("stall", t.cost.stall) + ms("pushed", t.pushed) +
           ms("-session", t.cost.session);
  };
  const auto decode = [&](const DecodeTerms& t) {
    return ms("ITL", t.itl) + ms("decode", t.decode) + ms("crowded", t.crowded);
  };
  std::string out = "one or two replicas: ";
  out.append(split_name(e.decision.split)).append("; times in ms\n");
  if (!x.unified.empty()) {
    out += "  whole on " + x.unified + ":" + prompt(x.unified_prompt) + decode(x.unified_decode) +
           ms("cost", x.unified_total) + "\n";
  }
  if (!x.possible) return out;
  out += "  prefill on " + x.prefill + ":" + prompt(x.terms.prompt) + "\n  transfer of " +
         std::to_string(x.transferred_tokens) + " tokens:" + ms("", x.terms.transfer) + "\n  decode on " + x.decode +
         ":" + ms("wait", x.terms.decode_wait) + decode(x.terms.decode) + ms("cost of the pair", x.terms.total) + "\n";
  return out;
}

void append_json(std::string& out, std::string_view key, std::int64_t value) {
  out.append(",\"").append(key).append("\":").append(std::to_string(value));
}
void append_json_ms(std::string& out, std::string_view key, std::int64_t ns) {
  out.append(",\"").append(key).append("_ms\":").append(milliseconds_text(ns));
}
void append_json(std::string& out, std::string_view key, std::string_view value) {
  out.append(",\"").append(key).append("\":");
  text::append_json_string(out, value);
}

void append_pair_json(std::string& out, const Explanation& e) {
  const PairExplanation& x = e.pair;
  append_json(out, "split", split_name(e.decision.split));
  out += ",\"pair\":{\"possible\":";
  out += x.possible ? "true" : "false";
  append_json(out, "prefill_replica", x.prefill);
  append_json(out, "decode_replica", x.decode);
  append_json(out, "unified_replica", x.unified);
  append_json(out, "transferred_tokens", x.transferred_tokens);
  append_json_ms(out, "wait", x.terms.prompt.cost.wait);
  append_json_ms(out, "prefill", x.terms.prompt.cost.prefill);
  append_json_ms(out, "miss", x.terms.prompt.cost.miss);
  append_json_ms(out, "stall", x.terms.prompt.cost.stall);
  append_json_ms(out, "pushed", x.terms.prompt.pushed);
  append_json_ms(out, "transfer", x.terms.transfer);
  append_json_ms(out, "decode_wait", x.terms.decode_wait);
  append_json_ms(out, "itl", x.terms.decode.itl);
  append_json_ms(out, "decode", x.terms.decode.decode);
  append_json_ms(out, "crowded", x.terms.decode.crowded);
  append_json_ms(out, "cost", x.terms.total);
  append_json_ms(out, "unified_cost", x.unified_total);
  out += "}";
}

}  // namespace

std::string to_text(const Explanation& e) {
  std::string out = head(e);
  std::size_t width = 7;
  for (const auto& c : e.candidates) width = std::max(width, c.name.size() + 3);
  append_cell(out, "replica", width, true);
  for (const auto* title : {"cached", "in flight", "wait", "prefill", "miss", "-hot", "stall", "decode", "tail",
                            "evict", "full", "transfer", "-session", "-ring", "cost ms"}) {
    append_cell(out, title, 10);
  }
  out += "\n";
  for (const auto& c : e.candidates) {
    append_cell(out, c.dp_rank == 0 ? c.name : c.name + "/" + std::to_string(c.dp_rank), width, true);
    append_cell(out, std::to_string(c.cached_tokens[0] + c.cached_tokens[1] + c.cached_tokens[2] + c.cached_tokens[3]),
                10);
    append_cell(out, std::to_string(c.load.requests), 10);
    for (const std::int64_t ns :
         {c.cost.wait, c.cost.prefill, c.cost.miss, c.cost.rebate, c.cost.stall, c.cost.decode, c.cost.tail,
          c.cost.evict, c.cost.full, c.cost.transfer, c.cost.session, c.cost.prior, c.cost.total}) {
      append_cell(out, milliseconds_text(ns), 10);
    }
    out.append(c.chosen ? " <- chosen" : " ").append(c.lost_because).append("\n");
  }
  if (e.pairs) out += pair_text(e);
  return out;
}

std::string to_json(const Explanation& e) {
  const Decision& d = e.decision;
  std::string out = "{\"verdict\":\"";
  out.append(verdict_name(d.verdict)).append("\"");
  append_json(out, "reason", reason_name(d.reason));
  append_json(out, "pool", e.pool);
  append_json(out, "algorithm", e.algorithm);
  append_json(out, "blocks", static_cast<std::int64_t>(e.blocks));
  append_json(out, "input_tokens", d.input_tokens.value);
  append_json(out, "cached_tokens", d.total_cached().value);
  append_json(out, "best_cached_tokens", d.best_cached_tokens.value);
  append_json(out, "shared_requests", e.shared_requests);
  append_json_ms(out, "expected_wait", d.expected_wait.value);
  append_json_ms(out, "expected_prefill", d.expected_prefill.value);
  append_json(out, "no_match", e.no_match);
  if (e.pairs) append_pair_json(out, e);
  out += ",\"candidates\":[";
  for (std::size_t i = 0; i < e.candidates.size(); ++i) {
    const auto& c = e.candidates[i];
    out += i == 0 ? "{\"replica\":" : ",{\"replica\":";
    text::append_json_string(out, c.name);
    append_json(out, "dp_rank", static_cast<std::int64_t>(c.dp_rank));
    out.append(",\"eligible\":")
        .append(c.eligible ? "true" : "false")
        .append(",\"chosen\":")
        .append(c.chosen ? "true" : "false");
    append_json(out, "device_tokens", c.cached_tokens[0]);
    append_json(out, "host_tokens", c.cached_tokens[1]);
    append_json(out, "disk_tokens", c.cached_tokens[2]);
    append_json(out, "shared_tokens", c.cached_tokens[3]);
    append_json(out, "requests", c.load.requests);
    append_json(out, "pending_tokens", c.load.pending_tokens);
    append_json(out, "context_tokens", c.load.context_tokens);
    append_json_ms(out, "wait", c.cost.wait);
    append_json_ms(out, "prefill", c.cost.prefill);
    append_json_ms(out, "miss", c.cost.miss);
    append_json_ms(out, "hot_rebate", c.cost.rebate);
    append_json_ms(out, "stall", c.cost.stall);
    append_json_ms(out, "decode", c.cost.decode);
    append_json_ms(out, "tail", c.cost.tail);
    append_json_ms(out, "evict", c.cost.evict);
    append_json_ms(out, "full", c.cost.full);
    append_json_ms(out, "transfer", c.cost.transfer);
    append_json_ms(out, "session_bonus", c.cost.session);
    append_json_ms(out, "ring_prior", c.cost.prior);
    append_json_ms(out, "cost", c.cost.total);
    append_json(out, "lost_because", c.lost_because);
    out += "}";
  }
  return out + "]}";
}

}  // namespace warmroute
