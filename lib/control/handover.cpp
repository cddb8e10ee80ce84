// From the journal to a sink.
#include <chrono>
#include <utility>

#include "control/bell_thread.hpp"
#include "control/record_batch.hpp"
#include "warmroute/control/sink.hpp"

namespace warmroute {
namespace control {

void RecordBatch::add(const JournalRecord& record) {
  if (used_ == own_.size()) own_.emplace_back();
  Own& own = own_[used_++];
  JournalRecord& copy = records_.emplace_back(record);
  UsageEvent& e = copy.event;
  const std::array<std::string_view*, 14> views{
      &e.operation_id,  &e.key_id,         &e.team_id,     &e.provider,           &e.operation,
      &e.request_model, &e.response_model, &e.response_id, &e.replica_id,         &e.class_id,
      &e.finish_reason, &e.service_tier,   &e.price_key,   &e.price_table_version};
  own.text.clear();
  for (const std::string_view* view : views) own.text += *view;
  std::size_t at = 0;
  for (std::string_view* view : views) {
    *view = std::string_view(own.text).substr(at, view->size());
    at += view->size();
  }
  own.bill.assign(e.bill.begin(), e.bill.end());
  e.bill = own.bill;
}

namespace {

Status check(const HandoverOptions& o, const std::string& directory) {
  std::string faults;
  const auto require = [&](bool fine, const char* what) {
    if (!fine) faults.append(faults.empty() ? "" : "; ").append(what);
  };
  require(!directory.empty(), "directory is empty");
  require(o.batch >= 1 && o.batch <= 65'536, "batch must lie in 1..65536");
  require(o.interval >= milliseconds(1) && o.interval <= seconds(60), "interval must lie in 1 ms .. 1 min");
  require(o.backoff_from >= milliseconds(1) && o.backoff_from <= o.backoff_to,
          "backoff_from must lie in 1 ms .. backoff_to");
  require(o.backoff_to <= seconds(3'600), "backoff_to must be at most 1 h");
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "hand-over: " + faults, kNoOffset};
}

}  // namespace
}  // namespace control

struct HandoverThread::Impl {
  Impl(Journal& j, std::string d, UsageSink& s, HandoverOptions o)
      : journal(j), directory(std::move(d)), sink(s), options(o) {}
  ~Impl() { work.stop(); }

  void run();
  Result<bool> step();
  Status fill();
  void note(const Result<bool>& outcome);

  Journal& journal;
  const std::string directory;
  UsageSink& sink;
  const HandoverOptions options;
  control::BellThread work;  // its mutex: of what follows

  std::uint64_t asked = 0;  // drains
  std::uint64_t done = 0;   // of those, followed by a look that found nothing
  HandoverStatus status;

  // the thread's own
  std::optional<JournalReader> reader;
  control::RecordBatch batch;  // read, and not yet acknowledged
  bool taken = false;          // the sink has it
};

Status HandoverThread::Impl::fill() {
  if (!reader) {
    auto opened = JournalReader::open(directory, journal.acknowledged());
    if (!opened) return opened.error();
    reader.emplace(std::move(*opened));
  }
  batch.clear();
  taken = false;
  JournalRecord record;
  while (batch.records().size() < options.batch) {
    const auto more = reader->next(record);
    if (!more) {  // from the acknowledged place, next time
      reader.reset();
      batch.clear();
      return more.error();
    }
    if (!*more) break;
    batch.add(record);
  }
  return {};
}

// One batch. What failed is tried again from there: a batch that the sink has is not handed to it twice in one process.
// returns: false: nothing was left.
Result<bool> HandoverThread::Impl::step() {
  if (batch.empty()) {
    if (Status s = fill(); !s) return s.error();
    if (batch.empty()) {
      // Begins and withdrawals lie behind the cursor, too: their segments can go.
      if (reader->cursor() == journal.acknowledged()) return false;
      taken = true;
    }
  }
  if (!taken) {
    if (Status s = sink.deliver(batch.records()); !s) return s.error();
    taken = true;
    const std::lock_guard lock(work.mutex);
    status.delivered += batch.records().size();
    ++status.batches;
  }
  if (Status s = journal.acknowledge(reader->cursor()); !s) return s.error();
  const bool some = !batch.empty();
  batch.clear();
  return some;
}

void HandoverThread::Impl::note(const Result<bool>& outcome) {
  bool say = false;
  std::uint64_t before = 0;
  {
    const std::lock_guard lock(work.mutex);
    before = status.failures_in_row;
    status.drained = outcome.ok() && !*outcome;
    status.acknowledged = journal.acknowledged();
    if (outcome) {
      status.failures_in_row = 0;
      say = before != 0;
    } else {
      ++status.failures;
      ++status.failures_in_row;
      status.last_error = outcome.error().message;
      say = before == 0;
    }
  }
  if (!say) return;
  if (outcome) options.log(LogLevel::info, "usage is handed over again, after " + std::to_string(before) + " failures");
  else options.log(LogLevel::warning, "usage cannot be handed over: " + outcome.error().message);
}

void HandoverThread::Impl::run() {
  Nanos pause = options.backoff_from;
  std::unique_lock lock(work.mutex);
  while (!work.stopping) {
    const std::uint64_t wanted = asked;
    lock.unlock();
    const auto outcome = step();
    note(outcome);
    lock.lock();
    if (outcome && *outcome) continue;
    Nanos wait = options.interval;
    if (outcome) {
      pause = options.backoff_from;
      done = wanted;
      work.bell.notify_all();
    } else {
      wait = pause;
      pause = std::min(pause + pause, options.backoff_to);
    }
    work.bell.wait_for(lock, std::chrono::nanoseconds(wait.value),
                       [&] { return work.stopping || (outcome.ok() && asked != done); });
  }
}

HandoverThread::HandoverThread(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
HandoverThread::~HandoverThread() = default;
HandoverThread::HandoverThread(HandoverThread&&) noexcept = default;
HandoverThread& HandoverThread::operator=(HandoverThread&&) noexcept = default;

Result<HandoverThread> HandoverThread::start(Journal& journal, std::string directory, UsageSink& sink,
                                             HandoverOptions options) {
  if (Status s = control::check(options, directory); !s) return s.error();
  auto impl = std::make_unique<Impl>(journal, std::move(directory), sink, options);
  if (Status s = impl->work.start("hand-over", [me = impl.get()] { me->run(); }); !s) return s.error();
  return HandoverThread(std::move(impl));
}

bool HandoverThread::drain(Nanos timeout) {
  std::unique_lock lock(impl_->work.mutex);
  const std::uint64_t mine = ++impl_->asked;
  impl_->work.bell.notify_all();
  return impl_->work.bell.wait_for(lock, std::chrono::nanoseconds(timeout.value), [&] { return impl_->done >= mine; });
}

HandoverStatus HandoverThread::status() const {
  const std::lock_guard lock(impl_->work.mutex);
  return impl_->status;
}

}  // namespace warmroute
