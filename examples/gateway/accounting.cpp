// The books: how they are opened, and what requests ask of them.
#include "gateway/accounting.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace warmroute::gateway {

namespace {

constexpr Nanos kDay = seconds(86'400);
constexpr std::string_view kAnyModel = "*";

LimitOptions limit_options(Nanos max_request) {
  LimitOptions options;
  options.lease = max_request + seconds(60);  // longer than any request; ended by the guard long before
  return options;
}

Status cannot(const std::string& what, const Error& error) {
  return Error{error.code, what + ": " + error.message, kNoOffset};
}

/// returns: the text of a secret's file without the newline that editors put at its end.
Result<std::string> read_secret(const std::string& path) {
  auto text = read_file(path, 65'536);
  if (!text) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return text;
}

}  // namespace

UsageTime usage_now() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {now(), WallNanos{std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count()}};
}

Accounting::Accounting(const UsageConfig& config, Nanos max_request, LogSink log)
    : config_(config), log_(log), limits_(limit_options(max_request)) {
  std::random_device random;
  char prefix[20];
  std::snprintf(prefix, sizeof prefix, "op-%08x%08x", random(), random());
  operation_prefix_ = prefix;
}

Accounting::~Accounting() = default;

Result<std::unique_ptr<Accounting>> Accounting::open(const UsageConfig& config, const std::vector<std::string>& models,
                                                     Nanos max_request, LogSink log) {
  std::unique_ptr<Accounting> books(new Accounting(config, max_request, log));
  for (const auto& model : models) {
    if (!model.empty()) books->models_.insert(model);
  }
  if (auto read = books->read_files(); !read) return read.error();
  if (auto opened = books->open_journal(); !opened) return opened.error();
  return books;
}

Status Accounting::read_files() {
  for (const auto& [version, path] : config_.peppers) {
    const auto pepper = read_secret(path);
    if (!pepper) return cannot("pepper", pepper.error());
    if (auto added = keys_.add_pepper(version, *pepper); !added) return cannot("pepper '" + path + "'", added.error());
  }
  if (!config_.prices.empty()) {
    auto table = PriceTable::load(config_.prices);
    if (!table) return cannot("prices '" + config_.prices + "'", table.error());
    prices_.set(std::make_shared<const PriceTable>(std::move(*table)));
  }
  if (!config_.upstream_key_env.empty()) {
    const char* value = std::getenv(config_.upstream_key_env.c_str());
    if (value == nullptr || *value == '\0')
      return Error{Code::invalid_argument, "upstream_key_env: there is no variable '" + config_.upstream_key_env + "'",
                   kNoOffset};
    upstream_key_ = value;
  }
  return {};
}

Status Accounting::open_journal() {
  if (config_.journal.empty()) return {};
  auto journal = Journal::open(config_.journal, config_.journal_options);
  if (!journal) return cannot("journal '" + config_.journal + "'", journal.error());
  journal_.emplace(std::move(*journal));
  const JournalStatistics found = journal_->statistics();
  if (found.recovered != 0 || found.torn_bytes != 0 || found.damaged != 0) {
    log_(found.damaged == 0 ? LogLevel::info : LogLevel::warning,
         "journal: " + std::to_string(found.recovered) + " requests were open when the last process ended, " +
             std::to_string(found.torn_bytes) + " bytes of a torn tail were cut, " + std::to_string(found.damaged) +
             " segments are damaged");
  }
  return {};
}

Status Accounting::begin_serving() {
  first_prices_ = prices_.get();
  LedgerOptions options;
  options.prices = first_prices_.get();
  ledger_.emplace(options);
  if (!journal_) return {};
  auto reader = JournalReader::open(config_.journal);
  if (!reader) return cannot("journal", reader.error());
  const UsageTime present = usage_now();
  for (JournalRecord record;;) {
    const auto more = reader->next(record);
    if (!more) return cannot("journal", more.error());
    if (!*more) break;
    ledger_->add(record.event, record.kind == JournalKind::incomplete);
    if (checks_keys()) charge_again(record.event, present);
  }
  if (config_.usage_file.empty()) return {};
  sink_ = std::make_unique<JsonLinesSink>(config_.usage_file);
  HandoverOptions handing;
  handing.log = log_;
  auto handover = HandoverThread::start(*journal_, config_.journal, *sink_, handing);
  if (!handover) return cannot("usage_file", handover.error());
  handover_.emplace(std::move(*handover));
  return {};
}

/// Counters of limits live in memory; after a restart the journal has what they were charged with. An event is charged as it was:
/// reserved when it began and settled with what it used, so that each window gets its own. One that does not fit into a limit
/// any more is left out: that limit is as used up as it can be.
void Accounting::charge_again(const UsageEvent& event, UsageTime present) {
  if (event.error || event.start_time > present.wall) return;
  const UsageTime then{present.steady - Nanos{present.wall.value - event.start_time.value}, event.start_time};
  const auto scope = scopes(event.key_id, event.team_id, model_name(event.request_model));
  if (!scope) return;
  const LimitDecision decision = limits_.reserve(*scope, {}, then);
  if (!decision.allowed()) return;
  const Usage& usage = event.usage;
  (void)limits_.settle(decision.ticket,
                       {usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, event.cost_picos}, then);
}

std::string Accounting::model_name(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  std::string name(model);
  if (const auto alias = aliases_.find(name); alias != aliases_.end()) name = alias->second;
  if (models_.contains(name) || control_models_.contains(name)) return name;
  const auto prices = prices_.get();
  if (!name.empty() && prices && prices->find(name)) return name;
  return std::string(kAnyModel);
}

void Accounting::set_control_models(std::set<std::string> models, std::map<std::string, std::string> aliases) {
  const std::lock_guard lock(mutex_);
  control_models_.swap(models);
  aliases_.swap(aliases);
}

TokenEstimator& Accounting::estimator(const std::string& model) {
  const std::lock_guard lock(mutex_);
  auto& one = estimators_[model];
  if (!one) one = std::make_unique<TokenEstimator>();
  return *one;
}

Result<std::vector<ScopeId>> Accounting::scopes(std::string_view key, std::string_view team, std::string_view model) {
  std::vector<ScopeId> all;
  const std::pair<std::string_view, std::string_view> names[]{{"key", key}, {"team", team}, {"model", model}};
  for (const auto& [dimension, value] : names) {
    if (value.empty()) continue;
    const auto scope = limits_.scope(dimension, value);
    if (!scope) return scope.error();
    all.push_back(*scope);
  }
  return all;
}

std::string Accounting::next_operation() {
  return operation_prefix_ + "-" + std::to_string(operations_.fetch_add(1, std::memory_order_relaxed) + 1);
}

/// The journal first: what the ledger shows is on record. An end that the disk does not take is held there (held_ends).
void Accounting::record(std::uint64_t number, const UsageEvent& event) {
  if (journal_ && number != 0) {
    const auto ended = journal_->end(number, event);
    if (!journal_bad_.exchange(!ended) && !ended)  // once, and what it comes to is on /metrics
      log_(LogLevel::error, "journal: ends of requests are held in memory: " + ended.error().message);
  }
  ledger_->add(event);
}

void Accounting::upkeep() {
  const UsageTime time = usage_now();
  limits_.advance(time, 10'000);
  if (time.steady - synced_at_ < Nanos{config_.journal_sync.count() * 1'000'000}) return;
  synced_at_ = time.steady;
  if (journal_ && config_.journal_options.sync == JournalSync::batched) (void)journal_->sync();  // statistics say it
  ledger_->forget_before(WallNanos{time.wall.value - config_.usage_days * kDay.value});
}

void Accounting::close(Nanos patience) {
  if (handover_ && !handover_->drain(patience))
    log_(LogLevel::warning, "usage_file: not all could be handed over; it will be when the gateway is started again");
  handover_.reset();
  if (!journal_) return;
  if (const auto synced = journal_->sync(); !synced) log_(LogLevel::error, "journal: " + synced.error().message);
}

}  // namespace warmroute::gateway
