// One thread, a SUB socket per engine, and a DEALER for as long as a replay runs.
#include "warmroute/ingest/kv_subscriber.hpp"

#include <zmq.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "socket.hpp"

namespace warmroute {
namespace {

constexpr int kPerTurn = 256;  // messages of one engine before the next one has its turn
constexpr long kTurnMs = 50;   // statuses and timeouts are at most so old
constexpr const char* kDoor = "inproc://warmroute-kv-commands";

std::string name_of(ReplicaId id) { return std::to_string(id.slot) + "." + std::to_string(id.generation); }

/// One engine. Belongs to the thread.
struct Line {
  Line(Router& router, const KvEndpoint& e, const KvSourceOptions& options)
      : endpoint(e), isolation_key(e.source.events.isolation_key), source(router, e.replica, with_own_key(options)) {}

  KvEndpoint endpoint;
  std::string isolation_key;  // the source keeps a view of it
  KvSource source;
  zmq::Socket events, monitor, replay;
  KvEndpointStatus status;

 private:
  KvSourceOptions with_own_key(KvSourceOptions options) {
    endpoint.source.events.isolation_key = options.events.isolation_key = isolation_key;
    return options;
  }
};

}  // namespace

struct KvSubscriber::Impl {
  Impl(Router& r, KvSubscriberOptions o) : router(&r), options(o) {}
  ~Impl() { stop(); }

  Status begin();
  void stop();
  /// Runs `command` on the thread and waits for it.
  Status call(const std::function<Status()>& command);

  Status open_line(const KvEndpoint& endpoint);
  Status close_line(ReplicaId replica);

  void run();
  void wait();
  void listen(Line& line, Nanos turn);
  void follow_replay(Line& line, Nanos turn);
  void follow_connection(Line& line);
  void ask_replay(Line& line);
  void publish();
  [[nodiscard]] Nanos now() const {
    if (options.clock != nullptr) return options.clock(options.clock_user);
    return Nanos{
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count()};
  }
  void say(LogLevel level, const Line& line, std::string_view what) const {
    std::string text = "KV events of replica " + name_of(line.endpoint.replica) + ": ";
    options.log(level, text.append(what));
  }

  Router* router;
  KvSubscriberOptions options;
  zmq::Context context;
  std::thread thread;

  // the thread's own
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<zmq_pollitem_t> polled;
  zmq::Socket door;
  zmq::Message message;
  std::uint64_t monitors = 0;
  std::chrono::steady_clock::time_point published_at{};

  // between callers and the thread
  std::mutex calling;  // guards `bell`, which is one socket for all callers
  zmq::Socket bell;
  mutable std::mutex shared;
  std::condition_variable answered;
  const std::function<Status()>* command = nullptr;
  Status answer;
  bool answer_ready = false;
  std::vector<KvEndpointStatus> published;
  std::atomic<bool> stopping{false};
};

// ---------------------------------------------------------------- callers' side

Status KvSubscriber::Impl::begin() {
  context.reset(zmq_ctx_new());
  if (context == nullptr) return zmq::error_of("no ZeroMQ context");
  door = zmq::open(context.get(), ZMQ_PAIR);
  bell = zmq::open(context.get(), ZMQ_PAIR);
  if (door == nullptr || bell == nullptr || zmq_bind(door.get(), kDoor) != 0 || zmq_connect(bell.get(), kDoor) != 0) {
    return zmq::error_of("no ZeroMQ sockets");
  }
  thread = std::thread([this] { run(); });
  return {};
}

void KvSubscriber::Impl::stop() {
  if (!thread.joinable()) return;
  stopping.store(true);
  {
    const std::lock_guard lock(calling);
    zmq_send(bell.get(), "", 0, 0);
  }
  thread.join();
  bell.reset();
  door.reset();
}

Status KvSubscriber::Impl::call(const std::function<Status()>& what) {
  const std::lock_guard one_at_a_time(calling);
  std::unique_lock lock(shared);
  command = &what;
  answer_ready = false;
  zmq_send(bell.get(), "", 0, 0);
  answered.wait(lock, [this] { return answer_ready; });
  return std::exchange(answer, Status{});
}

// ---------------------------------------------------------------- the thread

Status KvSubscriber::Impl::open_line(const KvEndpoint& endpoint) {
  for (const auto& line : lines) {
    if (line->endpoint.replica == endpoint.replica) {
      return Error{Code::already_exists, "replica " + name_of(endpoint.replica) + " has a subscription already",
                   kNoOffset};
    }
  }
  if (Status sound = validate(endpoint.source); !sound) return sound;
  KvSourceOptions source = endpoint.source;
  source.replay = !endpoint.replay.empty();
  auto line = std::make_unique<Line>(*router, endpoint, source);
  line->status.replica = endpoint.replica;
  line->events = zmq::open(context.get(), ZMQ_SUB);
  if (line->events == nullptr) return zmq::error_of("no socket for events");
  void* socket = line->events.get();
  const auto limit = static_cast<std::int64_t>(options.max_message_bytes);
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &limit, sizeof limit);
  zmq::set(socket, ZMQ_RCVHWM, options.queue_messages);
  zmq::set(socket, ZMQ_RECONNECT_IVL, static_cast<int>(options.reconnect_from.value / 1'000'000));
  zmq::set(socket, ZMQ_RECONNECT_IVL_MAX, static_cast<int>(options.reconnect_to.value / 1'000'000));
  zmq::set(socket, ZMQ_TCP_KEEPALIVE, 1);
  zmq::set(socket, ZMQ_HEARTBEAT_IVL, 10'000);  // a host that went without a word is noticed
  zmq::set(socket, ZMQ_HEARTBEAT_TIMEOUT, 30'000);
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, endpoint.topic.data(), endpoint.topic.size());
  const std::string watch = "inproc://warmroute-kv-monitor-" + std::to_string(++monitors);
  line->monitor = zmq::open(context.get(), ZMQ_PAIR);
  if (line->monitor == nullptr ||
      zmq_socket_monitor(socket, watch.c_str(), ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) != 0 ||
      zmq_connect(line->monitor.get(), watch.c_str()) != 0) {
    return zmq::error_of("no monitor for the connection");
  }
  if (zmq_connect(socket, endpoint.events.c_str()) != 0) {
    Error error = zmq::error_of("cannot connect to '" + endpoint.events + "'");
    error.code = Code::invalid_argument;
    return error;
  }
  if (!endpoint.replay.empty()) {  // said now, not at the first gap
    const zmq::Socket trial = zmq::open(context.get(), ZMQ_DEALER);
    if (trial == nullptr || zmq_connect(trial.get(), endpoint.replay.c_str()) != 0) {
      Error error = zmq::error_of("cannot connect to '" + endpoint.replay + "'");
      error.code = Code::invalid_argument;
      return error;
    }
  }
  lines.push_back(std::move(line));
  publish();
  return {};
}

Status KvSubscriber::Impl::close_line(ReplicaId replica) {
  const auto at =
      std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line->endpoint.replica == replica; });
  if (at == lines.end())
    return Error{Code::not_found, "replica " + name_of(replica) + " has no subscription", kNoOffset};
  lines.erase(at);
  publish();
  return {};
}

void KvSubscriber::Impl::run() {
  while (!stopping.load()) {
    wait();
    while (message.receive(door.get())) {
      std::unique_lock lock(shared);
      const auto* what = std::exchange(command, nullptr);
      if (what == nullptr) continue;
      lock.unlock();  // the caller waits; readers of statuses need not
      Status done = (*what)();
      lock.lock();
      answer = std::move(done);
      answer_ready = true;
      answered.notify_all();
    }
    const Nanos turn = now();
    for (const auto& line : lines) {
      follow_connection(*line);
      listen(*line, turn);
      follow_replay(*line, turn);
      line->source.advance(turn);
      ask_replay(*line);
    }
    if (const auto at = std::chrono::steady_clock::now(); at - published_at > std::chrono::milliseconds(kTurnMs)) {
      published_at = at;
      publish();
    }
  }
  lines.clear();
}

void KvSubscriber::Impl::wait() {
  polled.clear();
  const auto add = [this](const zmq::Socket& socket) {
    if (socket != nullptr) polled.push_back({socket.get(), 0, ZMQ_POLLIN, 0});
  };
  add(door);
  for (const auto& line : lines) {
    add(line->events);
    add(line->monitor);
    add(line->replay);
  }
  zmq_poll(polled.data(), static_cast<int>(polled.size()), kTurnMs);
}

void KvSubscriber::Impl::listen(Line& line, Nanos turn) {
  for (int i = 0; i < kPerTurn && message.receive(line.events.get()); ++i) {
    const auto read = read_kv_frames(KvSocket::subscriber, message.frames());
    if (!read) {
      if (line.status.bad_frames++ == 0) say(LogLevel::warning, line, read.error().message);
      continue;
    }
    line.source.live(*read, turn);
    ask_replay(line);
  }
}

void KvSubscriber::Impl::ask_replay(Line& line) {
  const auto from = line.source.wants_replay();
  if (!from) {
    if (line.source.status().state != KvSourceState::replaying) line.replay.reset();
    return;
  }
  // A new socket each time: what an earlier request still brings must not look like holes in this one.
  line.replay = zmq::open(context.get(), ZMQ_DEALER);
  if (line.replay == nullptr) return;  // its timeout asks again
  zmq::set(line.replay.get(), ZMQ_RCVHWM, 0);
  const auto limit = static_cast<std::int64_t>(options.max_message_bytes);
  zmq_setsockopt(line.replay.get(), ZMQ_MAXMSGSIZE, &limit, sizeof limit);
  if (zmq_connect(line.replay.get(), line.endpoint.replay.c_str()) != 0) return;
  std::array<unsigned char, 8> seq{};
  for (std::size_t i = 0; i < seq.size(); ++i) seq[i] = static_cast<unsigned char>(*from >> (56 - 8 * i));
  zmq_send(line.replay.get(), "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
  zmq_send(line.replay.get(), seq.data(), seq.size(), ZMQ_DONTWAIT);
  say(LogLevel::info, line, "a gap: replay requested from message " + std::to_string(*from));
}

void KvSubscriber::Impl::follow_replay(Line& line, Nanos turn) {
  for (int i = 0; i < kPerTurn && line.replay != nullptr && message.receive(line.replay.get()); ++i) {
    const auto read = read_kv_frames(KvSocket::dealer, message.frames());
    if (!read) {
      ++line.status.bad_frames;
      continue;
    }
    line.source.replayed(*read, turn);
    ask_replay(line);
  }
}

// An engine that comes back may be a new one: its numbers will tell. What it held counts until then.
void KvSubscriber::Impl::follow_connection(Line& line) {
  while (message.receive(line.monitor.get())) {
    const auto frames = message.frames();
    if (frames.empty() || frames[0].size() < 2) continue;
    std::uint16_t event = 0;
    std::memcpy(&event, frames[0].data(), sizeof event);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      line.status.connected = true;
      say(LogLevel::info, line, ++line.status.connects == 1 ? "connected" : "connected again");
    } else if (event == ZMQ_EVENT_DISCONNECTED) {
      line.status.connected = false;
      say(LogLevel::warning, line, "the connection is gone; it is tried again");
    }
  }
}

void KvSubscriber::Impl::publish() {
  std::vector<KvEndpointStatus> next;
  next.reserve(lines.size());
  for (const auto& line : lines) {
    line->status.source = line->source.status();
    line->status.blocks_stored = line->source.counters().blocks_stored;
    line->status.blocks_removed = line->source.counters().blocks_removed;
    next.push_back(line->status);
  }
  const std::lock_guard lock(shared);
  published.swap(next);
}

// ---------------------------------------------------------------- the interface

KvSubscriber::KvSubscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvSubscriber::~KvSubscriber() = default;
KvSubscriber::KvSubscriber(KvSubscriber&&) noexcept = default;
KvSubscriber& KvSubscriber::operator=(KvSubscriber&&) noexcept = default;

Result<KvSubscriber> KvSubscriber::start(Router& router, KvSubscriberOptions options) {
  auto impl = std::make_unique<Impl>(router, options);
  if (const Status begun = impl->begin(); !begun) return begun.error();
  return KvSubscriber(std::move(impl));
}
Status KvSubscriber::add(const KvEndpoint& endpoint) {
  return impl_->call([&] { return impl_->open_line(endpoint); });
}
Status KvSubscriber::remove(ReplicaId replica) {
  return impl_->call([&] { return impl_->close_line(replica); });
}
std::vector<KvEndpointStatus> KvSubscriber::statuses() const {
  const std::lock_guard lock(impl_->shared);
  return impl_->published;
}
Result<KvEndpointStatus> KvSubscriber::status(ReplicaId replica) const {
  for (const KvEndpointStatus& status : statuses()) {
    if (status.replica == replica) return status;
  }
  return Error{Code::not_found, "replica " + name_of(replica) + " has no subscription", kNoOffset};
}

}  // namespace warmroute
