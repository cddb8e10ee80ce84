/// What the gateway counts beside the router's own statistics, and its Prometheus form (`warmroute_gateway_*`).
/// Plain atomics: counting is wait-free, reading is consistent per number only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace warmroute::gateway {

/// Why a request was sent a second time.
enum class RetryCause : std::uint8_t { connect = 0, reset = 1, server_error = 2, backpressure = 3 };
inline constexpr std::array<std::string_view, 4> kRetryCauses{"connect", "reset", "server_error", "backpressure"};

/// The four timeouts, by name.
enum class Timeout : std::uint8_t { connect = 0, first_token = 1, inter_token = 2, total = 3 };
inline constexpr std::array<std::string_view, 4> kTimeouts{"connect", "first_token", "inter_token", "total"};

/// What was answered when nothing could be: the client had gone before. As nginx writes it.
inline constexpr unsigned kClientGone = 499;

struct Counters {
  using Count = std::atomic<std::uint64_t>;

  std::array<Count, 600> requests{};  ///< by status code
  std::array<Count, 4> retries{};     ///< by RetryCause
  std::array<Count, 4> timeouts{};    ///< by Timeout
  Count retries_refused{0};           ///< the budget was empty
  Count client_aborts{0};
  Count answers_cut{0};  ///< streams that broke after the first byte had been passed on
  Count pairs{0};        ///< prefilled on one server, decoded on another
  Count pairs_whole{0};  ///< that were to be, and went to one server whole
  Count upstream_opened{0};
  Count upstream_reused{0};
  Count upstream_stale{0};  ///< kept-alive connections that the model server had closed meanwhile
  std::atomic<std::int64_t> upstream_connections{0};
  std::atomic<std::int64_t> client_connections{0};
  std::atomic<std::int64_t> requests_in_flight{0};

  void answered(unsigned status) noexcept {
    requests[status < requests.size() ? status : 0].fetch_add(1, std::memory_order_relaxed);
  }
  void retried(RetryCause cause) noexcept {
    retries[static_cast<std::size_t>(cause)].fetch_add(1, std::memory_order_relaxed);
  }
  void timed_out(Timeout which) noexcept {
    timeouts[static_cast<std::size_t>(which)].fetch_add(1, std::memory_order_relaxed);
  }
};

/// Adds one to a gauge for as long as it lives.
class Gauge {
 public:
  explicit Gauge(std::atomic<std::int64_t>& value) : value_(value) { value_.fetch_add(1, std::memory_order_relaxed); }
  ~Gauge() { value_.fetch_sub(1, std::memory_order_relaxed); }
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

 private:
  std::atomic<std::int64_t>& value_;
};

/// Appends the families to a Prometheus page.
void append_prometheus(const Counters& counters, std::int64_t retries_left, std::string& out);

}  // namespace warmroute::gateway
