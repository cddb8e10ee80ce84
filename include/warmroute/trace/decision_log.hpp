/// The log of everything a router was told and everything it decided: written by trace/decision_recorder.hpp, read here, and
/// played again on a fresh router, which decides the same, call by call; or, with a knob turned, shows where it first decides otherwise.
///
/// Invariant: what is in the log is what the router was given; replaying it needs nothing else. Block hashes, engines' names of blocks,
/// sessions, tenants and the hash seed are in it under a secret key alone (SipHash-2-4), prompts and labels not at all.
/// Does not: keep two calls apart that came at the same time: a recorder lets calls take turns, so there is one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/types.hpp"

namespace warmroute::trace {

/// A call of Router. Numbers are fixed and only appended.
enum class DecisionCall : std::uint8_t {
  set_policy = 1,
  add_replica = 2,
  remove_replica = 3,
  set_health = 4,
  update_replica = 5,
  clear_cache = 6,
  signal = 7,
  prefix_counters = 8,
  blocks_stored = 9,
  blocks_removed = 10,
  blocks_also_on = 11,
  clear_shared_store = 12,
  route = 13,
  first_token = 14,
  finish = 15,
  fail = 16,
  advance = 17,
  restore_cached = 18,
  drain = 19,
  transfer_done = 20,
  restore_learned = 21,
  peer_loads = 22,
  peer_placed = 23,
};
inline constexpr std::size_t kDecisionCallCount = 24;
[[nodiscard]] std::string_view decision_call_name(DecisionCall call) noexcept;

/// What `route` was asked, its strings owned.
struct LoggedRequest {
  std::string model;
  std::string adapter;
  std::string session;  ///< keyed
  std::string
      tenant;  ///< keyed; as it is where the policy isolates by pool, since it is part of the pools' names there
  BlockKind block_kind = BlockKind::tokens;
  std::int64_t input_tokens = kUnknown;
  std::int64_t prompt_bytes = kUnknown;
  std::int64_t max_output_tokens = kUnknown;
  std::uint32_t class_id = 0;
  std::int32_t priority = 0;
  Nanos deadline{0};
  bool stream = false;
  bool exact_pool = false;
  std::vector<ReplicaId> excluded;
  ReplicaId pinned = kNoReplica;
};

/// One call and what came of it. Members that a call does not use are as they are here.
struct DecisionRecord {
  std::uint64_t number = 0;  ///< from 0
  DecisionCall call = DecisionCall::advance;
  Nanos now{0};  ///< as the caller gave it; of calls without a time that of the call before

  ReplicaId replica = kNoReplica;  ///< whom it is about; of add_replica: what it got
  Ticket ticket = kNoTicket;
  ReplicaSpec spec{};  ///< without labels and reason
  Health health = Health::up;
  Signal signal = Signal::running;
  double value = 0;
  PrefixCounters counters{};
  Tier tier = Tier::device;
  std::optional<EngineHash> parent;
  std::vector<EngineHash> ids;    ///< keyed
  std::vector<BlockHash> blocks;  ///< keyed; of route and peer_placed: the prompt's
  std::string text;  ///< set_policy: its JSON; clear_shared_store: the pool; restore_..., peer_loads: the body
  std::uint64_t policy_digest = 0;
  Nanos away{0};   ///< restore_cached
  Nanos until{0};  ///< drain
  LoggedRequest request;
  UsageCounts usage;
  Outcome outcome = Outcome::finished;

  Code code = Code::ok;  ///< of calls that give a Result
  bool done = false;     ///< of first_token, transfer_done, finish and fail
  std::uint64_t count =
      0;  ///< blocks_removed, blocks_also_on: of those known; restore_...: added; peer_loads: the peer
  Decision decision;
};

/// returns: whether two decisions agree in every member.
[[nodiscard]] bool same_decision(const Decision& a, const Decision& b) noexcept;

/// A line of JSON, without its newline. Hashes as they are in the log, 16 hex digits each; `blocks` false: only how many.
void append_json_line(const DecisionRecord& record, std::string& out, bool blocks = false);

struct DecisionLogLimits {
  std::size_t max_record_bytes = std::size_t{64} << 20;
};

/// Reads a log record by record. threads: one at a time.
class DecisionLogReader {
 public:
  /// errors: io; malformed: no decision log, or its head is damaged; unsupported: of another version.
  [[nodiscard]] static Result<DecisionLogReader> open(const std::string& path, const DecisionLogLimits& limits = {});
  /// lifetime: `bytes` until the reader's end.
  [[nodiscard]] static Result<DecisionLogReader> from_bytes(std::string_view bytes,
                                                            const DecisionLogLimits& limits = {});
  DecisionLogReader(DecisionLogReader&&) noexcept;
  DecisionLogReader& operator=(DecisionLogReader&&) noexcept;
  ~DecisionLogReader();

  /// Fills `record`, whose memory is used again. returns: false at the end; a record that was not written out whole is cut off there
  /// (torn_bytes). errors: malformed with its offset: a record that is whole and damaged; too_large; io. Nothing comes behind an error.
  [[nodiscard]] Result<bool> next(DecisionRecord& record);

  /// The sizes that the recorded router was made with.
  [[nodiscard]] const RouterOptions& router_options() const noexcept;
  [[nodiscard]] std::uint64_t torn_bytes() const noexcept;  ///< at the end; known when next gave false

 private:
  struct State;
  explicit DecisionLogReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

struct DecisionReplayOptions {
  /// Members of a policy's JSON form (policy_from_json), put over the policy that the router starts with and over every one that is set: what
  /// would have been decided with other knobs. Behind the first choice that differs the rest of the log answers another question: it tells
  /// what became of the recorded choices. Empty: nothing is changed.
  std::string change{};
  std::uint64_t max_records = 0;  ///< 0: all
};

/// Where the replay and the log part.
struct DecisionDifference {
  std::uint64_t record = 0;  ///< its number
  DecisionCall call = DecisionCall::route;
  Nanos now{0};
  Decision recorded;
  Decision replayed;
};

struct DecisionReplay {
  std::uint64_t records = 0;
  std::uint64_t decisions = 0;
  std::uint64_t differing = 0;      ///< decisions that differ in any member
  std::uint64_t other_choices = 0;  ///< of these, in verdict or replica
  std::uint64_t other_results = 0;  ///< other calls that ended otherwise
  std::uint64_t torn_bytes = 0;
  std::optional<DecisionDifference> first_difference;  ///< a decision in any member, or another call's result
  std::optional<DecisionDifference> first_other_choice;
  [[nodiscard]] bool identical() const noexcept { return differing == 0 && other_results == 0; }
};

/// Plays a log from its start on a fresh router. errors: those of the reader; malformed: a policy in it that cannot be read; those of
/// policy_from_json and Router::set_policy for `change`.
/// cost: as the calls themselves, and reading.
[[nodiscard]] Result<DecisionReplay> replay_decisions(DecisionLogReader& log,
                                                      const DecisionReplayOptions& options = {});

}  // namespace warmroute::trace
