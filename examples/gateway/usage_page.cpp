// What operators see of the books: /usage as JSON, and the families of /metrics.
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <tuple>

#include "common/text.hpp"
#include "gateway/accounting.hpp"
#include "gateway/gauges.hpp"

namespace warmroute::gateway {

using examples::json_quoted;

namespace {

constexpr std::array<std::pair<std::string_view, LedgerBy>, 5> kDimensions{{{"key", LedgerBy::key},
                                                                            {"team", LedgerBy::team},
                                                                            {"model", LedgerBy::model},
                                                                            {"replica", LedgerBy::replica},
                                                                            {"window", LedgerBy::window}}};

bool has(LedgerBy set, LedgerBy one) noexcept { return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0; }

Error bad_query(std::string message) { return {Code::invalid_value, std::move(message), kNoOffset}; }

/// What /usage is asked: `by=key,team,model,replica,window` and `since=` seconds since 1970, or as far back as "24h" or "7d".
struct UsageQuery {
  LedgerBy by = LedgerBy::key | LedgerBy::team;
  WallNanos since{};
};

Result<WallNanos> read_since(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::int64_t seconds_each = unit.empty() ? 1 : unit == "h" ? 3'600 : unit == "d" ? 86'400 : 0;
  if (error != std::errc{} || number < 0 || number > 4'000'000'000 || seconds_each == 0)
    return bad_query("since is neither seconds since 1970 nor like 24h or 7d");
  if (unit.empty()) return wall_seconds(number);
  return WallNanos{std::max<std::int64_t>(
      0, usage_now().wall.value - std::min<std::int64_t>(number, 1'000'000) * seconds_each * 1'000'000'000)};
}

Result<UsageQuery> read_query(std::string_view query) {
  UsageQuery read;
  while (!query.empty()) {
    const std::string_view member = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(member.size() + 1, query.size()));
    const std::string_view name = member.substr(0, member.find('='));
    std::string_view value = member.substr(std::min(name.size() + 1, member.size()));
    if (name == "since") {
      const auto since = read_since(value);
      if (!since) return since.error();
      read.since = *since;
    } else if (name == "by") {
      read.by = LedgerBy::none;
      while (!value.empty()) {
        const std::string_view word = value.substr(0, value.find(','));
        value.remove_prefix(std::min(word.size() + 1, value.size()));
        const auto known = std::find_if(kDimensions.begin(), kDimensions.end(),
                                        [&](const auto& dimension) { return dimension.first == word; });
        if (known == kDimensions.end()) return bad_query("by is a list of key, team, model, replica, window");
        read.by = read.by | known->second;
      }
    } else {
      return bad_query("there are by=key,team,model,replica,window and since=");
    }
  }
  return read;
}

void append_money(std::string_view name, LedgerMoney money, std::string& out) {
  // usd + picos / 1e12 with picos >= 0: -0.25 is -1 and 75e10.
  const bool negative = money.usd < 0;
  std::int64_t usd = money.usd, picos = money.picos;
  if (negative && picos != 0) {
    usd += 1;
    picos = 1'000'000'000'000 - picos;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%s%lld.%012lld", negative ? "-" : "", static_cast<long long>(negative ? -usd : usd),
                static_cast<long long>(picos));
  out.append(",\"").append(name).append("\":").append(text);
}

void append_sums(const LedgerSums& sums, std::string& out) {
  const std::pair<const char*, std::int64_t> numbers[]{{"attempts", sums.attempts},
                                                       {"incomplete", sums.incomplete},
                                                       {"errors", sums.errors},
                                                       {"unknown_usage", sums.unknown_usage},
                                                       {"unknown_cost", sums.unknown_cost},
                                                       {"input_tokens", sums.input_tokens},
                                                       {"cached_input_tokens", sums.cached_input_tokens},
                                                       {"cache_write_input_tokens", sums.cache_write_input_tokens},
                                                       {"output_tokens", sums.output_tokens},
                                                       {"reasoning_output_tokens", sums.reasoning_output_tokens}};
  for (const auto& [name, value] : numbers) {
    if (out.back() != '{') out += ',';
    out.append("\"").append(name).append("\":").append(std::to_string(value));
  }
  char ratio[32] = "null";
  if (const auto hits = sums.hit_ratio()) std::snprintf(ratio, sizeof ratio, "%.6f", *hits);
  out.append(",\"hit_ratio\":").append(ratio);
  append_money("cost_usd", sums.cost, out);
  append_money("saved_by_cache_usd", sums.saved_by_cache, out);
}

void append_row(const LedgerRow& row, LedgerBy by, std::string& out) {
  out += '{';
  const auto name = [&](std::string_view member, LedgerBy one, const std::string& value) {
    if (has(by, one)) out.append(out.back() == '{' ? "\"" : ",\"").append(member).append("\":" + json_quoted(value));
  };
  name("key", LedgerBy::key, row.key_id);
  name("team", LedgerBy::team, row.team_id);
  name("model", LedgerBy::model, row.model);
  name("replica", LedgerBy::replica, row.replica_id);
  if (has(by, LedgerBy::window)) {
    out.append(out.back() == '{' ? "\"" : ",\"");
    out.append("window_start\":" + std::to_string(row.window_start.value / 1'000'000'000));
  }
  append_sums(row.sums, out);
  out += '}';
}

void append_journal(const JournalStatistics& j, std::string& out) {
  single(out, "journal_begins_total", "counter", "Attempts whose begin is on record.", j.begins);
  single(out, "journal_ends_total", "counter", "Attempts whose end is on record.", j.ends);
  single(out, "journal_open", "gauge", "Attempts that began and have not ended.", j.open);
  single(out, "journal_recovered", "gauge", "Attempts that the last process left open: on record as incomplete.",
         j.recovered);
  single(out, "journal_torn_bytes", "gauge", "Bytes that were cut off a torn tail at the start.", j.torn_bytes);
  single(out, "journal_damaged_segments", "gauge", "Segments with a bad record before their end.", j.damaged);
  single(out, "journal_unbilled_total", "counter", "Requests that were served without a record.", j.unbilled);
  single(out, "journal_held_ends", "gauge", "Ends in memory that the disk did not take.", j.held_ends);
  single(out, "journal_lost_ends_total", "counter", "Ends that neither disk nor memory took.", j.lost_ends);
  single(out, "journal_bytes", "gauge", "Size of all segments.", j.bytes);
  single(out, "journal_syncs_total", "counter", "Times the disk was asked to write.", j.syncs);
  single(out, "journal_full", "gauge", "1 while the disk takes no records.", j.full ? 1 : 0);
}

constexpr std::array<std::string_view, 7> kLimitOutcomes{
    "allowed", "rate_exceeded", "too_many_at_once", "budget_exceeded", "larger_than_limit", "no_room", "invalid"};

}  // namespace

Result<std::string> Accounting::usage_page(std::string_view query) const {
  const auto read = read_query(query);
  if (!read) return read.error();
  // Windows that reach into the time asked for: whole hours.
  using Names = std::tuple<std::string, std::string, std::string, std::string, std::int64_t>;
  std::map<Names, LedgerRow> rows;
  LedgerSums total;
  constexpr std::int64_t kWindow = 3'600'000'000'000;
  for (auto& row : ledger_->snapshot(read->by | LedgerBy::window)) {
    if (row.window_start.value + kWindow <= read->since.value) continue;
    total.add(row.sums);
    const std::int64_t window = has(read->by, LedgerBy::window) ? row.window_start.value : 0;
    auto [at, fresh] = rows.try_emplace({row.key_id, row.team_id, row.model, row.replica_id, window}, row);
    if (!fresh) at->second.sums.add(row.sums);
  }
  std::string out = "{\"total\":{";
  append_sums(total, out);
  out += "},\n\"rows\":[";
  for (const auto& [names, row] : rows) {
    out += out.back() == '[' ? "\n" : ",\n";
    append_row(row, read->by, out);
  }
  return out + "]}\n";
}

void Accounting::append_prometheus(std::string& out) const {
  if (!counts()) return;
  const AccountCounters& c = counters_;
  family(out, "keys_total", "counter", "Keys that clients showed, by what was found.");
  for (std::size_t i = 0; i < c.keys.size(); ++i) {
    if (const auto n = c.keys[i].load(); n != 0)
      sample(out, "keys_total", "verdict", key_verdict_name(static_cast<KeyVerdict>(i)), n);
  }
  labelled(out, "limits_total", "outcome", "Requests by what their limits said.", c.limits, kLimitOutcomes);
  single(out, "limits_shadow_denied_total", "counter", "Requests that a limit in shadow mode would have denied.",
         c.shadow_denied.load());
  single(out, "limits_open", "gauge", "Reservations that are not settled.", limits_.statistics().open);
  single(out, "limits_expired_total", "counter", "Reservations that nobody settled in time.",
         limits_.statistics().expired);
  single(out, "hard_stops_total", "counter", "Streams that were ended because a budget was gone.", c.hard_stops.load());
  single(out, "journal_refused_total", "counter", "Requests that were not served because none could be recorded.",
         c.journal_refused.load());
  single(out, "drained_total", "counter", "Answers that were read to their end after the client had left.",
         c.drained.load());
  single(out, "drains_cut_total", "counter", "Answers whose client had left and that took too long.",
         c.drains_cut.load());
  single(out, "usage_hidden_total", "counter", "Usage events that were asked for here and kept from the client.",
         c.usage_hidden.load());
  const LedgerSums total = ledger_->total();
  single(out, "usage_attempts_total", "counter", "Attempts in the ledger.", total.attempts);
  single(out, "usage_incomplete_total", "counter", "Attempts whose last word was not heard.", total.incomplete);
  single(out, "usage_unknown_cost_total", "counter", "Attempts without a price.", total.unknown_cost);
  single(out, "usage_input_tokens_total", "counter", "Tokens of prompts, cached ones included.", total.input_tokens);
  single(out, "usage_cached_input_tokens_total", "counter", "Tokens of prompts that came from a cache.",
         total.cached_input_tokens);
  single(out, "usage_output_tokens_total", "counter", "Tokens that were generated.", total.output_tokens);
  single(out, "usage_cost_usd_total", "counter", "What it cost, as far as prices are known.", total.cost.value());
  single(out, "ledger_rows", "gauge", "Rows of the ledger.", ledger_->rows());
  single(out, "ledger_overflowed_total", "counter", "Events that found the ledger full.", ledger_->overflowed());
  if (journal_) append_journal(journal_->statistics(), out);
  if (handover_) warmroute::append_prometheus(handover_->status(), out);
}

}  // namespace warmroute::gateway
