// PUB and ROUTER over ZeroMQ's C interface, see publisher.hpp.
#include <zmq.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/publisher.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::examples {
namespace {

constexpr std::size_t kRing = 10'000;  // batches, as vLLM keeps
constexpr int kPublishQueue = 100'000;
constexpr int kReplayQueue = 2 * (static_cast<int>(kRing) + 1);  // a whole replay fits: none of it is lost
constexpr long kTurnMs = 50;                                     // so long the end may wait for the thread

std::array<unsigned char, 8> big_endian(std::uint64_t v) {
  std::array<unsigned char, 8> out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<unsigned char>(v >> (56 - 8 * i));
  return out;
}

void send(void* socket, std::string_view frame, bool more) {
  zmq_send(socket, frame.data(), frame.size(), (more ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT);
}
void send_number(void* socket, std::uint64_t number) {
  const auto bytes = big_endian(number);
  zmq_send(socket, bytes.data(), bytes.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT);
}

/// returns: the frames of the next message; none when there is no message.
std::vector<std::string> receive(void* socket) {
  std::vector<std::string> frames;
  int more = 1;
  while (more != 0) {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&frame);
      return {};
    }
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
    more = zmq_msg_more(&frame);
    zmq_msg_close(&frame);
  }
  return frames;
}

}  // namespace

struct Publisher::Impl {
  explicit Impl(const PublisherOptions& o) : options(o), random(o.seed) {}
  ~Impl() {
    stopping = true;
    if (server.joinable()) server.join();
    if (pub != nullptr) zmq_close(pub);
    if (router != nullptr) zmq_close(router);
    if (context != nullptr) zmq_ctx_term(context);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status bind(int type, int queue, const std::string& where, void*& socket, std::string& bound);
  void serve();
  void replay_from(const std::string& peer, std::uint64_t from);

  PublisherOptions options;
  trace::SplitMix64 random;
  void* context = nullptr;
  void* pub = nullptr;
  void* router = nullptr;
  std::string events, replay;  // as bound
  std::atomic<bool> stopping{false};
  std::thread server;
  std::mutex mutex;
  std::uint64_t next = 0;
  std::deque<std::shared_ptr<const std::string>> ring;  // numbers next - size .. next - 1
  std::shared_ptr<const std::string> late;              // goes out behind the next one
  std::uint64_t late_seq = 0;
};

Status Publisher::Impl::bind(int type, int queue, const std::string& where, void*& socket, std::string& bound) {
  socket = zmq_socket(context, type);
  const int none = 0;
  if (socket != nullptr) {
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof queue);
  }
  if (socket == nullptr || zmq_bind(socket, where.c_str()) != 0) {
    return Error{Code::io, "cannot bind '" + where + "': " + zmq_strerror(zmq_errno()), kNoOffset};
  }
  std::array<char, 256> name{};
  std::size_t size = name.size();
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, name.data(), &size);
  bound = name.data();
  return {};
}

void Publisher::Impl::serve() {
  while (!stopping) {
    zmq_pollitem_t item{router, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, kTurnMs) <= 0) continue;
    // [peer, delimiter, start]; anything else is not answered, as real engines do.
    const auto frames = receive(router);
    if (frames.size() != 3 || !frames[1].empty() || frames[2].size() > 8) continue;
    std::uint64_t from = 0;
    for (const char c : frames[2]) from = from << 8 | static_cast<unsigned char>(c);
    replay_from(frames[0], from);
  }
}

void Publisher::Impl::replay_from(const std::string& peer, std::uint64_t from) {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<const std::string>>> batches;
  {
    const std::lock_guard lock(mutex);
    const std::uint64_t first = next - ring.size();
    for (std::uint64_t seq = std::max(from, first); seq < next; ++seq) batches.emplace_back(seq, ring[seq - first]);
  }
  const auto answer = [&](std::string_view topic, std::uint64_t seq, std::string_view payload) {
    send(router, peer, true);
    send(router, "", true);
    if (options.topic_in_replay) send(router, topic, true);
    send_number(router, seq);
    send(router, payload, false);
  };
  for (const auto& [seq, payload] : batches) answer(options.topic, seq, *payload);
  answer("", ~std::uint64_t{0}, "");
}

Publisher::Publisher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Publisher::~Publisher() = default;

Result<std::unique_ptr<Publisher>> Publisher::open(const PublisherOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  impl->context = zmq_ctx_new();
  if (auto bound = impl->bind(ZMQ_PUB, kPublishQueue, options.events, impl->pub, impl->events); !bound)
    return bound.error();
  if (!options.replay.empty()) {
    if (auto bound = impl->bind(ZMQ_ROUTER, kReplayQueue, options.replay, impl->router, impl->replay); !bound)
      return bound.error();
    impl->server = std::thread([state = impl.get()] { state->serve(); });
  }
  return std::unique_ptr<Publisher>(new Publisher(std::move(impl)));
}

void Publisher::publish(std::string payload) {
  Impl& state = *impl_;
  const auto batch = std::make_shared<const std::string>(std::move(payload));
  std::uint64_t seq = 0;
  {
    const std::lock_guard lock(state.mutex);
    seq = state.next++;
    state.ring.push_back(batch);
    if (state.ring.size() > kRing) state.ring.pop_front();
  }
  const auto drawn = [&](double rate) { return static_cast<double>(state.random.next() >> 11) * 0x1.0p-53 < rate; };
  if (drawn(state.options.drop_rate)) return;
  const auto send_batch = [&](std::uint64_t number, const std::string& what) {
    send(state.pub, state.options.topic, true);
    send_number(state.pub, number);
    send(state.pub, what, false);
  };
  if (state.late == nullptr && state.options.reorder_rate > 0 && drawn(state.options.reorder_rate)) {
    state.late = batch;
    state.late_seq = seq;
    return;
  }
  send_batch(seq, *batch);
  if (const auto late = std::exchange(state.late, nullptr); late != nullptr) send_batch(state.late_seq, *late);
}

void Publisher::restart() {
  const std::lock_guard lock(impl_->mutex);
  impl_->next = 0;
  impl_->ring.clear();
  impl_->late.reset();
}

const std::string& Publisher::events() const noexcept { return impl_->events; }
const std::string& Publisher::replay() const noexcept { return impl_->replay; }

}  // namespace warmroute::examples
