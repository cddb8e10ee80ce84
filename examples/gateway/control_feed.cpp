// Control's snapshots, see control_feed.hpp.
#include "gateway/control_feed.hpp"

#include <map>
#include <set>

namespace warmroute::gateway {

Result<std::unique_ptr<ControlFeed>> ControlFeed::start(const UsageConfig& config, Accounting& books, Router& router,
                                                        LogSink log) {
  ControlOptions options;
  options.trust.allow_unsigned = config.allow_unsigned;
  for (const auto& path : config.trust) {
    const auto text = read_file(path, 65'536);
    if (!text) return Error{text.code(), "trust: " + text.error().message, kNoOffset};
    auto key = parse_verifying_key(*text);
    if (!key) return Error{key.code(), "trust '" + path + "': " + key.error().message, kNoOffset};
    options.trust.keys.push_back(std::move(*key));
  }
  options.snapshot.base_policy = router.policy();
  options.directory = config.control_dir;
  options.price_file = config.prices;
  std::unique_ptr<ControlFeed> feed(new ControlFeed(books, router, log));
  feed->applier_.emplace(std::move(options),
                         ControlTargets{&books.keys(), &books.limits(), &books.prices(), feed.get()});
  if (!config.control_dir.empty()) {
    if (const auto loaded = feed->applier_->load_last_good(usage_now()); !loaded)
      log(LogLevel::warning, "control: the last good snapshot was not taken: " + loaded.error().message);
  }
  FileSourceOptions source;
  source.path = config.control;
  source.on_bytes = SnapshotApplier::on_bytes;
  source.on_same = SnapshotApplier::on_same;
  source.user = &*feed->applier_;
  source.log = log;
  auto started = FileSourceThread::start(source);
  if (!started) return started.error();
  feed->source_.emplace(std::move(*started));
  feed->source_->look_now();
  if (feed->status().generation == 0)
    log(LogLevel::warning,
        "control: there is no snapshot yet: every key is refused until '" + config.control + "' holds one");
  return feed;
}

Status ControlFeed::check(const Snapshot& snapshot) { return snapshot.policy ? validate(*snapshot.policy) : Status{}; }

void ControlFeed::applied(const Snapshot& snapshot) {
  std::set<std::string> models;
  for (const auto& limits : snapshot.limits) {
    if (limits.dimension == "model" && limits.value) models.insert(*limits.value);
  }
  books_.set_control_models(std::move(models), {snapshot.aliases.begin(), snapshot.aliases.end()});
  if (snapshot.policy) {
    if (const auto set = router_.set_policy(*snapshot.policy); !set)
      log_(LogLevel::error, "control: the router refuses the policy: " + set.error().message);
  }
  log_(LogLevel::info, "control: generation " + std::to_string(snapshot.generation) + " is in force, " +
                           std::to_string(snapshot.keys.size()) + " keys");
}

void ControlFeed::rolled_back(const RollbackRecord& record) {
  log_(LogLevel::warning,
       "control: rolled back from generation " + std::to_string(record.from) + " to " + std::to_string(record.to) +
           " by " + (record.signed_by.empty() ? "nobody who signs" : record.signed_by) + ": " + record.reason);
}

void ControlFeed::append_prometheus(std::string& out) const { warmroute::append_prometheus(status(), out); }

}  // namespace warmroute::gateway
