// How much may be used.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_limits_options kLimitsDefaults = WR_LIMITS_OPTIONS_INIT;
const wr_limit_spec kLimitSpecDefaults = WR_LIMIT_SPEC_INIT;
const wr_limit_use kLimitUseDefaults = WR_LIMIT_USE_INIT;
const wr_limit_decision kLimitDecisionDefaults = WR_LIMIT_DECISION_INIT;
constexpr std::string_view kNoLimits = "limits is NULL, or a string has a size and no data";

static_assert(sizeof(wr_scope) == sizeof(ScopeId) && WR_NO_SCOPE == static_cast<std::uint32_t>(kNoScope));
static_assert(WR_LIMIT_UNIT_SLOTS >= kLimitUnitCount);

UsageTime usage_time(std::int64_t steady_ns, std::int64_t wall_ns) noexcept {
  return {Nanos{steady_ns}, WallNanos{wall_ns}};
}
UsageCount limit_count(std::int64_t count) noexcept { return count == WR_UNKNOWN ? UsageCount{} : UsageCount{count}; }

wr_status read_limit_use(const wr_limit_use* given, LimitUse& out, wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_limit_use> in(given, kLimitUseDefaults);
  if (!in) return in.refuse(err, "the use is NULL");
  out = {limit_count(in->input_tokens), limit_count(in->cached_input_tokens), limit_count(in->output_tokens),
         limit_count(in->cost_picos)};
  return WR_STATUS_OK;
}

wr_status read_limit_spec(const wr_limit_spec* given, LimitSpec& out, wr_error* err) {
  const Input<wr_limit_spec> in(given, kLimitSpecDefaults);
  if (!in) return in.refuse(err, "a limit is NULL");
  if (!readable(in->name) || !readable(in->time_zone)) return null_argument(err, kNoLimits);
  constexpr std::uint32_t kMostInt32 = 0x7fff'ffff;
  if (in->kind > WR_LIMIT_CONCURRENCY || in->unit > WR_LIMIT_COST_NANOS || in->calendar_unit > WR_CALENDAR_YEAR ||
      in->calendar_count > kMostInt32 || in->cached_weight_permille > kMostInt32) {
    return fail(err, Code::out_of_range, "a limit's kind, unit, calendar or weight is not one that there is");
  }
  out.name = view(in->name);
  out.kind = static_cast<LimitKind>(in->kind);
  out.unit = static_cast<LimitUnit>(in->unit);
  out.amount = in->amount;
  out.period = Nanos{in->period_ns};
  out.burst = in->burst;
  out.window.unit = static_cast<CalendarUnit>(in->calendar_unit);
  out.window.count = static_cast<std::int32_t>(in->calendar_count);
  out.window.anchor_local_seconds = in->anchor_local_seconds;
  if (in->time_zone.size != 0) out.window.time_zone = view(in->time_zone);
  out.cached_weight_permille = static_cast<std::int32_t>(in->cached_weight_permille);
  out.shadow = in->shadow != 0;
  out.hard_stop = in->hard_stop != 0;
  return WR_STATUS_OK;
}

template <class Set>
wr_status with_limit_specs(wr_limits* limits, const wr_limit_spec* specs, std::size_t count, std::size_t stride,
                           wr_error* err, Set&& set) noexcept {
  if (limits == nullptr || !readable(specs, count)) return null_argument(err, "limits or specs is NULL");
  if (!strides_fit<wr_limit_spec>(count, stride)) {
    return fail(err, Code::invalid_argument, "stride is smaller than a wr_limit_spec, or no multiple of its alignment");
  }
  if (count > kMaxLimitsPerScope) return fail(err, Code::invalid_argument, "more than 8 limits of a scope");
  return guard(err, [&] {
    std::vector<LimitSpec> list(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (const wr_status bad = read_limit_spec(at(specs, i, stride), list[i], err); bad != WR_STATUS_OK) return bad;
    }
    return done(set(list), err);
  });
}

void fill_limit_decision(wr_limit_decision& out, const LimitDecision& d) noexcept {
  out.outcome = static_cast<std::uint32_t>(d.outcome);
  out.ticket = static_cast<std::uint64_t>(d.ticket);
  out.scope = static_cast<std::uint32_t>(d.scope);
  out.limit = d.limit;
  out.retry_after_ns = d.retry_after.value;
  out.reset_ns = d.reset.value;
  out.shadow_denied = d.shadow_denied ? 1 : 0;
  out.may_stop = d.may_stop ? 1 : 0;
  out.shadow_scope = static_cast<std::uint32_t>(d.shadow_scope);
  out.shadow_limit = d.shadow_limit;
  for (std::size_t i = 0; i < kLimitUnitCount; ++i) {
    out.left[i] = {d.left[i].amount, d.left[i].remaining, d.left[i].reset.value};
  }
}

// A text result about a scope that exists; `text` may find that there is none.
template <class Text>
wr_status give_of_scope(const wr_limits* limits, wr_scope scope, char* buf, std::size_t cap, std::size_t* needed,
                        wr_error* err, Text&& text) noexcept {
  if (limits == nullptr || needed == nullptr) return null_argument(err, "limits or needed is NULL");
  return guard(err, [&] {
    const auto [dimension, value] = limits->limits.name(ScopeId{scope});
    if (dimension.empty()) return fail(err, Code::not_found, "there is no such scope");  // no scope's is empty
    const Result<std::string> found = text(dimension, value);
    return found ? give(*found, 1, buf, cap, needed, err) : fail(err, found.error());
  });
}

}  // namespace

wr_limit_spec capi::limit_spec_of(const LimitSpec& spec) noexcept {
  wr_limit_spec out = WR_LIMIT_SPEC_INIT;
  out.kind = static_cast<std::uint32_t>(spec.kind);
  out.name = str(spec.name);
  out.unit = static_cast<std::uint32_t>(spec.unit);
  out.calendar_unit = static_cast<std::uint32_t>(spec.window.unit);
  out.amount = spec.amount;
  out.period_ns = spec.period.value;
  out.burst = spec.burst;
  out.anchor_local_seconds = spec.window.anchor_local_seconds;
  out.time_zone = str(spec.window.time_zone);
  out.calendar_count = static_cast<std::uint32_t>(spec.window.count);
  out.cached_weight_permille = static_cast<std::uint32_t>(spec.cached_weight_permille);
  out.shadow = spec.shadow ? 1 : 0;
  out.hard_stop = spec.hard_stop ? 1 : 0;
  return out;
}

extern "C" {

wr_status wr_limits_new(const wr_limits_options* options, wr_limits** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  LimitOptions chosen;
  if (options != nullptr) {
    const Input<wr_limits_options> in(options, kLimitsDefaults);
    if (!in) return in.refuse(err, "options is NULL");
    if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
    if (in->orphans > WR_ORPHANS_REFUND) return fail(err, Code::out_of_range, "orphans is not one of WR_ORPHANS_...");
    chosen.lease = Nanos{in->lease_ns};
    chosen.orphans = static_cast<OrphanCharge>(in->orphans);
    chosen.max_scopes = in->max_scopes;
    chosen.max_reservations = in->max_reservations;
    chosen.concurrency_retry = Nanos{in->concurrency_retry_ns};
  }
  return guard(err, [&] {
    *out = std::make_unique<wr_limits>(chosen).release();
    return WR_STATUS_OK;
  });
}

void wr_limits_free(wr_limits* limits) { delete limits; }

wr_status wr_limits_scope(wr_limits* limits, wr_str dimension, wr_str value, wr_scope* out, wr_error* err) {
  if (limits == nullptr || out == nullptr || !readable(dimension) || !readable(value)) {
    return null_argument(err, kNoLimits);
  }
  return guard(err, [&] {
    const auto scope = limits->limits.scope(view(dimension), view(value));
    if (!scope) return fail(err, scope.error());
    *out = static_cast<wr_scope>(*scope);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_limits_set_default(wr_limits* limits, wr_str dimension, const wr_limit_spec* specs, size_t count,
                                size_t stride, wr_error* err) {
  if (!readable(dimension)) return null_argument(err, kNoLimits);
  return with_limit_specs(limits, specs, count, stride, err, [&](const std::vector<LimitSpec>& list) {
    return limits->limits.set_default_limits(view(dimension), list);
  });
}

wr_status wr_limits_set(wr_limits* limits, wr_scope scope, const wr_limit_spec* specs, size_t count, size_t stride,
                        wr_error* err) {
  return with_limit_specs(limits, specs, count, stride, err, [&](const std::vector<LimitSpec>& list) {
    return limits->limits.set_limits(ScopeId{scope}, list);
  });
}

wr_status wr_limits_name(const wr_limits* limits, wr_scope scope, uint32_t limit, char* buf, size_t cap, size_t* needed,
                         wr_error* err) {
  return give_of_scope(limits, scope, buf, cap, needed, err,
                       [&](const std::string&, const std::string&) -> Result<std::string> {
                         std::vector<LimitSpec> all = limits->limits.limits(ScopeId{scope});
                         if (limit >= all.size()) return Error{Code::not_found, "the scope has fewer limits"};
                         return std::move(all[limit].name);
                       });
}

wr_status wr_limits_scope_dimension(const wr_limits* limits, wr_scope scope, char* buf, size_t cap, size_t* needed,
                                    wr_error* err) {
  return give_of_scope(limits, scope, buf, cap, needed, err,
                       [](const std::string& dimension, const std::string&) { return dimension; });
}

wr_status wr_limits_scope_value(const wr_limits* limits, wr_scope scope, char* buf, size_t cap, size_t* needed,
                                wr_error* err) {
  return give_of_scope(limits, scope, buf, cap, needed, err,
                       [](const std::string&, const std::string& value) { return value; });
}

wr_status wr_limits_used(const wr_limits* limits, wr_scope scope, wr_str name, int64_t steady_ns, int64_t wall_ns,
                         int64_t* used, wr_error* err) {
  if (limits == nullptr || used == nullptr || !readable(name)) return null_argument(err, kNoLimits);
  return guard(err, [&] {
    const auto amount = limits->limits.used(ScopeId{scope}, view(name), usage_time(steady_ns, wall_ns));
    if (!amount) return fail(err, amount.error());
    *used = *amount;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_limits_reserve(wr_limits* limits, const wr_scope* scopes, size_t count, const wr_limit_use* estimate,
                            int64_t steady_ns, int64_t wall_ns, wr_limit_decision* out, wr_error* err) {
  if (limits == nullptr || !readable(scopes, count)) return null_argument(err, "limits or scopes is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  LimitUse use;
  if (const wr_status bad = read_limit_use(estimate, use, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    // The enumeration has this integer as its underlying type: the caller's array is read in place.
    const std::span<const ScopeId> asked(reinterpret_cast<const ScopeId*>(scopes), count);
    wr_limit_decision told = WR_LIMIT_DECISION_INIT;
    fill_limit_decision(told, limits->limits.reserve(asked, use, usage_time(steady_ns, wall_ns)));
    write(out, told);
    return WR_STATUS_OK;
  });
}

wr_status wr_limits_progress(wr_limits* limits, wr_limit_ticket ticket, const wr_limit_use* so_far, int64_t steady_ns,
                             int64_t wall_ns, uint32_t* stop) {
  if (limits == nullptr || so_far == nullptr || stop == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  LimitUse use;
  if (const wr_status bad = read_limit_use(so_far, use, nullptr); bad != WR_STATUS_OK) return bad;
  return guard(nullptr, [&] {
    const LimitProgress p = limits->limits.progress(LimitTicket{ticket}, use, usage_time(steady_ns, wall_ns));
    if (p == LimitProgress::stale) return static_cast<wr_status>(WR_STATUS_STALE);
    *stop = p == LimitProgress::stop ? 1 : 0;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_limits_extend(wr_limits* limits, wr_limit_ticket ticket, int64_t now_ns) {
  if (limits == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  return guard(nullptr, [&] { return done(limits->limits.extend(LimitTicket{ticket}, Nanos{now_ns}), nullptr); });
}

wr_status wr_limits_settle(wr_limits* limits, wr_limit_ticket ticket, const wr_limit_use* actual, int64_t steady_ns,
                           int64_t wall_ns) {
  if (limits == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  LimitUse use;
  if (const wr_status bad = read_limit_use(actual, use, nullptr); bad != WR_STATUS_OK) return bad;
  return guard(nullptr, [&] {
    return done(limits->limits.settle(LimitTicket{ticket}, use, usage_time(steady_ns, wall_ns)), nullptr);
  });
}

wr_status wr_limits_release(wr_limits* limits, wr_limit_ticket ticket, int64_t steady_ns, int64_t wall_ns) {
  if (limits == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  return guard(nullptr, [&] {
    return done(limits->limits.release(LimitTicket{ticket}, usage_time(steady_ns, wall_ns)), nullptr);
  });
}

wr_status wr_limits_advance(wr_limits* limits, size_t most, int64_t steady_ns, int64_t wall_ns, size_t* ended,
                            wr_error* err) {
  if (limits == nullptr) return null_argument(err, kNoLimits);
  return guard(err, [&] {
    const std::size_t count = limits->limits.advance(usage_time(steady_ns, wall_ns), most);
    if (ended != nullptr) *ended = count;
    return WR_STATUS_OK;
  });
}

wr_status wr_limits_read_statistics(const wr_limits* limits, wr_limits_statistics* out, wr_error* err) {
  if (limits == nullptr) return null_argument(err, kNoLimits);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const LimitStatistics s = limits->limits.statistics();
  write(out, wr_limits_statistics{0, 0, s.allowed, s.denied, s.shadow_denied, s.expired, s.stale, s.open, {}});
  return WR_STATUS_OK;
}

uint32_t wr_limit_status(uint32_t outcome, uint32_t budget_status) {
  if (outcome > WR_LIMIT_INVALID || budget_status > 999) return 500;
  return static_cast<std::uint32_t>(limit_status(static_cast<LimitOutcome>(outcome), static_cast<int>(budget_status)));
}

wr_status wr_limit_headers(const wr_limit_decision* decision, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  const Input<wr_limit_decision> in(decision, kLimitDecisionDefaults);
  if (!in) return in.refuse(err, "decision is NULL");
  return guard(err, [&] {
    LimitDecision d;
    d.retry_after = Nanos{in->retry_after_ns};
    for (std::size_t i = 0; i < kLimitUnitCount; ++i) {
      d.left[i] = {in->left[i].amount, in->left[i].remaining, Nanos{in->left[i].reset_ns}};
    }
    std::string text;
    for (const auto& [name, value] : limit_headers(d)) {
      text.append(name).append(": ").append(value).append("\r\n");
    }
    return give(text, 1, buf, cap, needed, err);
  });
}

}  // extern "C"
