// The options of keys, limits, prices and books.
#include <cstdlib>

#include "gateway/config_options.hpp"

namespace warmroute::gateway {
namespace {

auto text(std::string UsageConfig::*member) {
  return [=](Config& c, std::string_view v) {
    c.usage.*member = v;
    return v.empty() ? std::string("must not be empty") : std::string{};
  };
}

/// Sets one of a list of names, by its place.
template <class Set>
auto one_of(std::vector<std::string_view> names, Set set) {
  return [names = std::move(names), set](Config& c, std::string_view v) {
    std::string fault = "'" + std::string(v) + "' is none of";
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == v) {
        set(c.usage, i);
        return std::string{};
      }
      fault.append(" ").append(names[i]);
    }
    return fault;
  };
}

template <class Set>
auto truth(Set set) {
  return one_of({"false", "true", "0", "1", "off", "on"}, [set](UsageConfig& c, std::size_t i) { set(c, i % 2 == 1); });
}

std::string add_pepper(Config& config, std::string_view text) {
  const auto equals = text.find('=');
  std::uint32_t version = 0;
  if (equals == std::string_view::npos || equals + 1 == text.size()) return "must be VERSION=FILE, e.g. 1=pepper.txt";
  auto fault = read_number<std::uint32_t>(text.substr(0, equals), 0, 1'000'000'000, version);
  if (fault.empty()) config.usage.peppers.emplace_back(version, text.substr(equals + 1));
  return fault;
}

template <class Set>
auto count(std::int64_t low, std::int64_t high, Set set) {
  return [=](Config& c, std::string_view v) {
    std::int64_t value = 0;
    auto fault = read_number<std::int64_t>(v, low, high, value);
    if (fault.empty()) set(c.usage, value);
    return fault;
  };
}

void append_key_options(std::vector<Option>& options) {
  options.push_back({"control", "FILE",
                     "keys, limits, prices and policy as a signed snapshot, watched; clients need a key then",
                     text(&UsageConfig::control)});
  options.push_back({"trust",
                     "FILE",
                     "public key (PEM or hex) that may sign snapshots; as often as there are any",
                     [](Config& c, std::string_view v) {
                       c.usage.trust.emplace_back(v);
                       return std::string{};
                     },
                     {},
                     true});
  options.push_back({"pepper",
                     "VERSION=FILE",
                     "secret under which keys' digests were made; as often as there are any",
                     add_pepper,
                     {},
                     true});
  options.push_back(
      {"control_dir", "DIR", "keeps the last good snapshot for the next start", text(&UsageConfig::control_dir)});
  options.push_back({"allow_unsigned", "true|false", "take snapshots that nobody signed (false)",
                     truth([](UsageConfig& c, bool on) { c.allow_unsigned = on; }), "true"});
  options.push_back(
      {"budget_status", "402|403", "what a client is told whose budget is used up (402)",
       one_of({"402", "403"}, [](UsageConfig& c, std::size_t i) { c.budget_status = i == 0 ? 402 : 403; })});
  options.push_back({"upstream_key_env", "NAME",
                     "environment variable with the key that model servers get instead of the client's",
                     text(&UsageConfig::upstream_key_env)});
}

void append_book_options(std::vector<Option>& options) {
  options.push_back({"prices", "FILE", "prices in LiteLLM's form (model_prices_and_context_window.json)",
                     text(&UsageConfig::prices)});
  options.push_back(
      {"journal", "DIR", "writes down what is used before it is served, and after", text(&UsageConfig::journal)});
  options.push_back(
      {"journal_fsync", "none|batched|each", "when the disk is asked to write, for a loss of power (batched)",
       one_of({"none", "batched", "each"},
              [](UsageConfig& c, std::size_t i) { c.journal_options.sync = static_cast<JournalSync>(i); })});
  options.push_back(
      {"journal_fsync_ms", "MS", "how often batched asks (200)",
       count(1, 3'600'000, [](UsageConfig& c, std::int64_t ms) { c.journal_sync = std::chrono::milliseconds(ms); })});
  options.push_back({"journal_full", "refuse|serve",
                     "when the disk takes no record: 503, or serve unbilled, which /metrics counts (refuse)",
                     one_of({"refuse", "serve"}, [](UsageConfig& c, std::size_t i) {
                       c.journal_options.on_full = static_cast<JournalFull>(i);
                     })});
  options.push_back({"journal_segment_bytes", "N", "size of its files (64000000)",
                     count(4'096, 1'000'000'000'000, [](UsageConfig& c, std::int64_t n) {
                       c.journal_options.segment_bytes = static_cast<std::uint64_t>(n);
                     })});
  options.push_back(
      {"journal_max_bytes", "N", "of all files that were not handed over; beyond it the disk counts as full (no limit)",
       count(0, 1'000'000'000'000'000,
             [](UsageConfig& c, std::int64_t n) { c.journal_options.max_bytes = static_cast<std::uint64_t>(n); })});
  options.push_back({"usage_file", "FILE", "appends what the journal has as JSON lines and lets the journal forget it",
                     text(&UsageConfig::usage_file)});
  options.push_back({"usage_days", "N", "how long /usage remembers (35)",
                     count(1, 3'660, [](UsageConfig& c, std::int64_t n) { c.usage_days = n; })});
  options.push_back(
      {"include_usage", "true|false",
       "ask streams for their usage and keep it from clients that did not (true where anything is counted)",
       truth([](UsageConfig& c, bool on) { c.include_usage = on; }), "true"});
  options.push_back(
      {"on_hangup", "cut|drain",
       "when a client leaves: end its request, or read its answer to the end for its usage (cut)",
       one_of({"cut", "drain"}, [](UsageConfig& c, std::size_t i) { c.hangup.mode = static_cast<HangupMode>(i); })});
  options.push_back(
      {"drain_timeout_ms", "MS", "how long drain reads on (60000)",
       count(1, 86'400'000, [](UsageConfig& c, std::int64_t ms) { c.hangup.max_drain = milliseconds(ms); })});
}

}  // namespace

void append_usage_options(std::vector<Option>& options) {
  append_key_options(options);
  append_book_options(options);
}

void complete_usage(const UsageConfig& config, Faults& faults) {
  const bool keys = !config.control.empty();
  if (keys && config.trust.empty() && !config.allow_unsigned)
    faults.emplace_back("control: needs trust, the public key of whoever signs it (or allow_unsigned)");
  if (!keys && (!config.trust.empty() || !config.peppers.empty() || !config.control_dir.empty()))
    faults.emplace_back("trust, pepper and control_dir need control");
  if (config.journal.empty() && !config.usage_file.empty()) faults.emplace_back("usage_file: needs journal");
  if (!config.upstream_key_env.empty() && std::getenv(config.upstream_key_env.c_str()) == nullptr)
    faults.push_back("upstream_key_env: there is no variable '" + config.upstream_key_env + "'");
}

}  // namespace warmroute::gateway
