// Rules by name.
#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "trace/rules/options.hpp"

namespace warmroute::trace {
namespace {

constexpr std::array<std::string_view, 27> kNames{
    "random",  "rr",     "least",   "pending",  "p2c",    "match",     "hash",       "session",   "chwbl",
    "dualmap", "sglang", "sglang2", "dynamo",   "gaie",   "llmd",      "aibrix",     "lmetric",   "ttft",
    "priced",  "W",      "H",       "mooncake", "oracle", "warmroute", "pd:unified", "pd:always", "pd:decided"};

}  // namespace

std::span<const std::string_view> routing_rule_names() noexcept { return kNames; }

Result<RuleSpec> parse_rule(std::string_view text) {
  RuleSpec spec;
  std::size_t at = 0;
  for (bool first = true; at <= text.size(); first = false) {
    const std::size_t colon = std::min(text.find(':', at), text.size());
    const std::string_view piece = text.substr(at, colon - at);
    at = colon + 1;
    const std::size_t equals = piece.find('=');
    if (first) {
      spec.name = piece;
      if (piece.empty() || equals != std::string_view::npos)
        return Error{Code::invalid_argument,
                     "a rule is spelled name:option=value:option=value, not \"" + std::string(text) + "\"", kNoOffset};
      continue;
    }
    if (spec.name == "pd" && equals == std::string_view::npos) {  // its name has a colon in it
      spec.name.append(":").append(piece);
      continue;
    }
    if (equals == std::string_view::npos || equals == 0)
      return Error{Code::invalid_argument, "rule " + spec.name + ": \"" + std::string(piece) + "\" is not option=value",
                   kNoOffset};
    spec.options.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
  }
  return spec;
}

const std::string* RuleOptions::find(std::string_view name) {
  for (std::size_t i = 0; i < spec_->options.size(); ++i) {
    if (spec_->options[i].first != name) continue;
    known_[i] = true;
    return &spec_->options[i].second;
  }
  return nullptr;
}

void RuleOptions::fault(const std::string& text) { faults_ += (faults_.empty() ? "" : "; ") + text; }

double RuleOptions::number(std::string_view name, double fallback, double low, double high) {
  const std::string* text = find(name);
  if (text == nullptr) return fallback;
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || !(value >= low && value <= high)) {
    fault(std::string(name) + " must be a number from " + std::to_string(low) + " to " + std::to_string(high));
    return fallback;
  }
  return value;
}

std::string RuleOptions::word(std::string_view name, std::string_view fallback, std::vector<std::string_view> allowed) {
  const std::string* text = find(name);
  if (text == nullptr) return std::string(fallback);
  if (std::find(allowed.begin(), allowed.end(), *text) == allowed.end()) {
    std::string choices;
    for (const std::string_view a : allowed) choices += (choices.empty() ? "" : ", ") + std::string(a);
    fault(std::string(name) + " must be one of " + choices);
  }
  return *text;
}

Status RuleOptions::done() const {
  std::string faults = faults_;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (!known_[i]) faults += (faults.empty() ? "" : "; ") + ("there is no option " + spec_->options[i].first);
  }
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "rule " + spec_->name + ": " + faults, kNoOffset};
}

Result<RulePtr> make_rule(const RuleSpec& spec, const RuleSetting& setting, const Policy& policy) {
  if (spec.name == "warmroute" || spec.name.starts_with("pd:")) return make_warmroute_rule(spec, setting, policy);
  RuleOptions options(spec);
  for (const auto make : {make_load_rule, make_ring_rule, make_cache_rule, make_priced_rule, make_oracle_rule}) {
    RulePtr rule = make(spec, setting, options);
    if (rule == nullptr) continue;
    if (const Status fine = options.done(); !fine) return fine.error();
    return rule;
  }
  std::string names;
  for (const std::string_view name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return Error{Code::invalid_argument, "there is no rule \"" + spec.name + "\"; known are " + names, kNoOffset};
}

}  // namespace warmroute::trace
