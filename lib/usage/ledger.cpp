// Rows lie in 64 shards by the hash of their names, each under its own lock; a snapshot takes one lock after the other.
#include "warmroute/usage/ledger.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <tuple>

#include "warmroute/detail/xxh3.hpp"

namespace warmroute {
namespace usage {

inline constexpr std::size_t kLedgerShards = 64;

struct alignas(64) LedgerShard {
  mutable std::mutex mutex;
  absl::flat_hash_map<std::string, LedgerSums> rows;
};

}  // namespace usage

namespace {

constexpr bool has_part(LedgerBy by, LedgerBy part) {
  return (static_cast<std::uint8_t>(by) & static_cast<std::uint8_t>(part)) != 0;
}

std::int64_t known(const UsageCount& count) { return count ? std::max<std::int64_t>(*count, 0) : 0; }

// A row's names and window as one string: each name behind its length, so that no name can look like two.
struct RowNames {
  std::array<std::string_view, 5> names;
  std::int64_t window = 0;

  void encode(std::string& out) const {
    out.assign(reinterpret_cast<const char*>(&window), sizeof window);
    for (const std::string_view name : names) {
      const auto size = static_cast<std::uint32_t>(name.size());
      out.append(reinterpret_cast<const char*>(&size), sizeof size).append(name);
    }
  }
  static RowNames decode(std::string_view text) {
    RowNames r;
    text.copy(reinterpret_cast<char*>(&r.window), sizeof r.window);
    text.remove_prefix(sizeof r.window);
    for (std::string_view& name : r.names) {
      std::uint32_t size = 0;
      text.copy(reinterpret_cast<char*>(&size), sizeof size);
      name = text.substr(sizeof size, size);
      text.remove_prefix(sizeof size + size);
    }
    return r;
  }
  void keep(LedgerBy by) {
    constexpr LedgerBy kParts[] = {LedgerBy::key, LedgerBy::team, LedgerBy::model, LedgerBy::replica,
                                   LedgerBy::class_id};
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!has_part(by, kParts[i])) names[i] = {};
    }
    if (!has_part(by, LedgerBy::window)) window = 0;
  }
};

std::string_view event_model(const UsageEvent& e) {
  return e.response_model.empty() ? e.request_model : e.response_model;
}

UsageReport report_of(const UsageEvent& e) {
  UsageReport r;
  r.usage = e.usage;
  r.complete = e.complete;
  r.source = e.source;
  r.service_tier = e.service_tier;
  r.model = event_model(e);
  return r;
}

// The same request had nothing been cached: all input at the plain rates.
UsageReport without_cache(UsageReport r) {
  for (UsageCount Usage::*const part :
       {&Usage::cached_input_tokens, &Usage::cache_write_input_tokens, &Usage::cached_text_input_tokens,
        &Usage::cached_audio_input_tokens, &Usage::cached_image_input_tokens, &Usage::cached_video_input_tokens}) {
    r.usage.*part = 0;
  }
  for (UsageCount Usage::*const part : {&Usage::cache_write_5m_tokens, &Usage::cache_write_30m_tokens,
                                        &Usage::cache_write_1h_tokens, &Usage::cache_write_12h_tokens}) {
    (r.usage.*part).reset();
  }
  return r;
}

// By the name that was priced before, else by the model's: another table may know only one of them.
Cost cost_by(const PriceTable& prices, const UsageEvent& e, const UsageReport& report) {
  PriceOptions how;
  how.provider = e.provider;
  const Cost cost = prices.cost(report, e.price_key, how);
  return cost.picos || e.price_key.empty() ? cost : prices.cost(report, {}, how);
}

LedgerSums sums_of(const UsageEvent& e, bool incomplete, const LedgerOptions& options) {
  LedgerSums s;
  s.attempts = 1;
  s.incomplete = incomplete || !e.complete ? 1 : 0;
  s.errors = e.error ? 1 : 0;
  s.unknown_usage = e.usage.input_tokens && e.usage.output_tokens ? 0 : 1;
  s.input_tokens = known(e.usage.input_tokens);
  s.cached_input_tokens = known(e.usage.cached_input_tokens);
  s.cache_write_input_tokens = known(e.usage.cache_write_input_tokens);
  s.output_tokens = known(e.usage.output_tokens);
  s.reasoning_output_tokens = known(e.usage.reasoning_output_tokens);
  if (e.usage.cached_input_tokens) s.cache_reported_input_tokens = s.input_tokens;
  std::optional<std::int64_t> cost = e.cost_picos;
  if (options.prices != nullptr) {
    UsageReport report = report_of(e);
    report.usage.reported_cost_picos.reset();  // prices, not the provider's own word
    const Cost now = cost_by(*options.prices, e, report);
    const Cost plain = now.picos ? cost_by(*options.prices, e, without_cache(report)) : Cost{};
    if (now.picos && plain.picos) s.saved_by_cache.add(*plain.picos - *now.picos);
    if (options.reprice) cost = now.picos;
  }
  s.unknown_cost = cost ? 0 : 1;
  if (cost) s.cost.add(*cost);
  return s;
}

}  // namespace

void LedgerSums::add(const LedgerSums& o) noexcept {
  attempts += o.attempts;
  incomplete += o.incomplete;
  errors += o.errors;
  unknown_usage += o.unknown_usage;
  unknown_cost += o.unknown_cost;
  input_tokens += o.input_tokens;
  cached_input_tokens += o.cached_input_tokens;
  cache_write_input_tokens += o.cache_write_input_tokens;
  output_tokens += o.output_tokens;
  reasoning_output_tokens += o.reasoning_output_tokens;
  cache_reported_input_tokens += o.cache_reported_input_tokens;
  cost.add(o.cost);
  saved_by_cache.add(o.saved_by_cache);
}

struct Ledger::Impl {
  explicit Impl(const LedgerOptions& o) : options(o) {
    if (options.window.value <= 0) options.window = seconds(3'600);
  }

  usage::LedgerShard& shard_of(std::string_view row) {
    return shards[XXH3_64bits(row.data(), row.size()) % usage::kLedgerShards];
  }
  std::int64_t window_of(WallNanos time) const {
    const std::int64_t rest = time.value % options.window.value;
    return time.value - (rest < 0 ? rest + options.window.value : rest);
  }

  LedgerOptions options;
  std::array<usage::LedgerShard, usage::kLedgerShards> shards;
  std::atomic<std::size_t> rows{0};
  std::atomic<std::uint64_t> overflowed{0};
};

Ledger::Ledger(const LedgerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Ledger::~Ledger() = default;
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;

void Ledger::add(const UsageEvent& e, bool incomplete) {
  Impl& l = *impl_;
  const LedgerSums sums = sums_of(e, incomplete, l.options);
  RowNames names{{e.key_id, e.team_id, event_model(e), e.replica_id, e.class_id},
                 l.window_of(e.end_time == WallNanos{} ? e.start_time : e.end_time)};
  names.keep(l.options.by);
  std::string row;
  names.encode(row);
  {
    usage::LedgerShard& shard = l.shard_of(row);
    const std::lock_guard lock(shard.mutex);
    if (const auto it = shard.rows.find(row); it != shard.rows.end()) return it->second.add(sums);
    if (l.rows.fetch_add(1, std::memory_order_relaxed) < l.options.max_rows) {
      shard.rows.emplace(std::move(row), sums);
      return;
    }
    l.rows.fetch_sub(1, std::memory_order_relaxed);
  }
  l.overflowed.fetch_add(1, std::memory_order_relaxed);
  names.keep(LedgerBy::none);
  names.encode(row);
  usage::LedgerShard& shard = l.shard_of(row);
  const std::lock_guard lock(shard.mutex);
  shard.rows[row].add(sums);
}

Result<std::uint64_t> Ledger::read(JournalReader& reader) {
  std::uint64_t count = 0;
  JournalRecord record;
  for (;;) {
    const auto more = reader.next(record);
    if (!more) return more.error();
    if (!*more) return count;
    add(record.event, record.kind == JournalKind::incomplete);
    ++count;
  }
}

std::vector<LedgerRow> Ledger::snapshot(LedgerBy by) const {
  absl::flat_hash_map<std::string, LedgerSums> grouped;
  std::string key;
  for (const usage::LedgerShard& shard : impl_->shards) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [row, sums] : shard.rows) {
      RowNames names = RowNames::decode(row);
      names.keep(by);
      names.encode(key);
      grouped[key].add(sums);
    }
  }
  std::vector<LedgerRow> all;
  all.reserve(grouped.size());
  for (const auto& [row, sums] : grouped) {
    const RowNames n = RowNames::decode(row);
    all.push_back({std::string(n.names[0]), std::string(n.names[1]), std::string(n.names[2]), std::string(n.names[3]),
                   std::string(n.names[4]), WallNanos{n.window}, sums});
  }
  const auto order = [](const LedgerRow& r) {
    return std::tie(r.window_start, r.key_id, r.team_id, r.model, r.replica_id, r.class_id);
  };
  std::sort(all.begin(), all.end(), [&](const LedgerRow& a, const LedgerRow& b) { return order(a) < order(b); });
  return all;
}

LedgerSums Ledger::total() const {
  LedgerSums sums;
  for (const LedgerRow& row : snapshot(LedgerBy::none)) sums.add(row.sums);
  return sums;
}

std::size_t Ledger::forget_before(WallNanos before) {
  std::size_t dropped = 0;
  if (!has_part(impl_->options.by, LedgerBy::window)) return dropped;
  for (usage::LedgerShard& shard : impl_->shards) {
    const std::lock_guard lock(shard.mutex);
    dropped += absl::erase_if(shard.rows, [&](const auto& row) {
      const std::int64_t window = RowNames::decode(row.first).window;  // 0: of what had no room
      return window != 0 && window + impl_->options.window.value <= before.value;
    });
  }
  impl_->rows.fetch_sub(dropped, std::memory_order_relaxed);
  return dropped;
}

std::size_t Ledger::rows() const { return impl_->rows.load(std::memory_order_relaxed); }
std::uint64_t Ledger::overflowed() const noexcept { return impl_->overflowed.load(std::memory_order_relaxed); }

}  // namespace warmroute
