/// One request's entries in the books: whose it is, what it reserves, each attempt's begin and end, what it used.
/// Invariants: whatever happens (an abort, a retry, a dead model server, a budget that ends, a shutdown), every begin gets one end
/// and every reservation one settle or release: the destructor makes what is missing. An attempt is ended before its client can
/// have all of the answer.
/// Does not: throw, wait, or know of connections. Without books it is a meter.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gateway/accounting.hpp"
#include "gateway/target.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::gateway {

/// How an attempt ended.
enum class Ending : std::uint8_t {
  answered = 0,  ///< the answer is whole
  refused = 1,   ///< by the model server, with a status: it used nothing
  lost = 2,      ///< it was sent and nothing came back: what it used is unknown, and is not the client's to pay
  cut = 3,       ///< in the middle, by the model server or on the way: what is not known is estimated
  left = 4,      ///< likewise, by the client
  stopped = 5,   ///< likewise, by a budget
};

class Account {
 public:
  Account(Accounting& books, const Target& target) : books_(books), target_(target) {}
  ~Account() { close(); }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  /// Whose key it is. returns: 401, or 503 where it is our fault.
  std::optional<Refusal> identify(std::string_view key);
  /// Estimates and reserves, once: further calls do nothing. `request`: as the router will see it; `body`: as the
  /// client sent it.
  /// returns: 400, 402 or 403, 429, 503.
  std::optional<Refusal> admit(const Request& request, std::string_view body);
  /// Before an attempt leaves. errors: io: the journal takes no record and the policy is to refuse.
  Status begin(std::string_view replica, const MeterProfile& profile);

  struct Fed {
    bool first_token = false;  ///< it ended in these bytes
    bool stop = false;         ///< a budget is gone: no more of this
  };
  /// The next bytes of the answer.
  Fed feed(std::string_view bytes);
  /// Ends the attempt under way, if there is one. Final unless `refused` or `lost`, after which another may begin.
  void end(Ending how);
  /// Ends what is open: nothing more comes.
  void close();

  /// returns: whether a client may take these bytes, which were fed, for the answer's end.
  [[nodiscard]] bool ends_in(std::string_view bytes) const;
  [[nodiscard]] const Meter& meter() const noexcept { return meter_; }
  /// The body ended. Before end(Ending::answered) where it did.
  void body_ended() { meter_.finish(); }
  [[nodiscard]] bool has_last_word() const { return meter_.complete(); }
  [[nodiscard]] const Headers& headers() const noexcept { return headers_; }          ///< x-ratelimit-*
  [[nodiscard]] const std::string& operation() const noexcept { return operation_; }  ///< empty: not counted
  [[nodiscard]] const KeyGrant& grant() const noexcept { return grant_; }
  [[nodiscard]] AccountCounters& counters() noexcept { return books_.counters(); }

 private:
  UsageEvent event() const;
  UsageReport estimated() const;
  UsageReport settled_report(Ending how) const;
  Cost cost_of(const UsageReport& report) const;
  std::optional<Refusal> denied(const LimitDecision& decision) const;

  Accounting& books_;
  const Target& target_;
  KeyGrant grant_;
  std::string operation_, model_, asked_model_, replica_, class_, tier_;
  Headers headers_;
  std::shared_ptr<const PriceTable> prices_;  // of the request, to its end
  TokenEstimate estimate_;
  std::int64_t prompt_bytes_ = kUnknown;
  std::uint32_t attempts_ = 0;
  std::uint64_t number_ = 0;  // of the journal; 0: none
  LimitTicket ticket_ = kNoLimitTicket;
  WallNanos began_{};
  bool admitted_ = false;
  bool open_ = false;  // an attempt is under way
  bool stream_ = false;
  bool may_stop_ = false;  // a budget that may end the answer is among the limits
  std::uint64_t charged_revision_ = 0;
  MeterOptions meter_options_{};
  Meter meter_;
};

}  // namespace warmroute::gateway
