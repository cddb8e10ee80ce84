/// ModelRouter: the bodies. A map is compiled into a view that hot calls read under an epoch guard.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/detail/quota.hpp"
#include "warmroute/route/models.hpp"

namespace warmroute {
namespace detail {

struct ModelView {
  struct Pool {
    std::string_view name;
    bool external = false;
    std::uint32_t quota = 0;  // 1 + its number; 0: none
    std::int64_t input_price = 0, cached_price = 0, output_price = 0;
  };
  struct Target {
    Pool pool;
    std::string_view model;
    std::uint32_t weight = 0;
  };
  struct Entry {
    std::string_view name;
    std::vector<Target> targets;  // fallbacks behind them
    std::size_t alternatives = 0;
    std::uint64_t total_weight = 0;
    TargetChoice choice = TargetChoice::weight;
  };
  std::vector<Entry> entries;          // ordered by name
  std::vector<Pool> pools;             // with terms, ordered by name
  std::vector<std::uint32_t> staying;  // classes that may not leave, ordered
  std::vector<PoolQuota*> quotas;      // by number, all that ever were
  bool unknown_names_are_pools = true;
  std::uint64_t seed = 0;

  template <class Rows>
  static const auto* find(const Rows& rows, std::string_view name) noexcept {
    const auto at = std::lower_bound(rows.begin(), rows.end(), name,
                                     [](const auto& row, std::string_view n) { return row.name < n; });
    return at != rows.end() && at->name == name ? &*at : nullptr;
  }
  [[nodiscard]] bool may_leave(std::uint32_t class_id) const noexcept {
    return staying.empty() || !std::binary_search(staying.begin(), staying.end(), class_id);
  }
};

// What of a request a quota is charged before anybody has counted its tokens: four bytes a token, 256 of answer where nothing is said.
inline std::int64_t tokens_to_charge(const Request& r) noexcept {
  constexpr std::int64_t kMost = 100'000'000;
  const std::int64_t input = r.input_tokens > 0     ? r.input_tokens
                             : r.prompt_bytes > 0   ? r.prompt_bytes / 4
                             : !r.token_ids.empty() ? static_cast<std::int64_t>(r.token_ids.size())
                                                    : static_cast<std::int64_t>(r.blocks.size()) * 16;
  const std::int64_t output = r.max_output_tokens >= 0 ? r.max_output_tokens : 256;
  return std::min(input, kMost) + std::min(output, kMost);
}

}  // namespace detail

struct ModelRouter::Try {
  const detail::ModelView::Target* target = nullptr;
  std::int64_t price = 0;
};

inline ModelRouter::ModelRouter(Router& router)
    : router_(&router), view_(domain_, std::make_unique<detail::ModelView>()) {}
inline ModelRouter::~ModelRouter() = default;

inline Status validate(const ModelMap& map) {
  std::string faults;
  const auto fault = [&](std::string_view where, std::string_view text) {
    faults.append(faults.empty() ? "" : "; ").append(where).append(text);
  };
  const auto twice = [&](const auto& rows, std::string_view kind) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) names.push_back(row.name);
    std::sort(names.begin(), names.end());
    for (auto at = names.begin(); (at = std::adjacent_find(at, names.end())) != names.end(); ++at)
      fault(kind, " '" + std::string(*at) + "' is there twice");
  };
  twice(map.models, "model");
  twice(map.pools, "pool");
  for (const ModelEntry& m : map.models) {
    const std::string where = "model '" + m.name + "'";
    if (m.targets.empty()) fault(where, " has no targets");
    if (m.targets.size() + m.fallbacks.size() > kMaxTargets)
      fault(where, " has more than " + std::to_string(kMaxTargets) + " targets and fallbacks");
    if (static_cast<int>(m.choice) > 1) fault(where, ": choice is not one of weight, cheapest");
    std::uint64_t weight = 0;
    for (const ModelTarget& t : m.targets) weight += t.weight;
    if (!m.targets.empty() && (weight == 0 || weight > 1'000'000'000))
      fault(where, ": the weights of its targets must add up to 1..10^9");
    for (const auto* list : {&m.targets, &m.fallbacks}) {
      for (const ModelTarget& t : *list) {
        if (t.pool.size() > 1'024 || t.model.size() > 1'024) fault(where, ": a name is longer than 1024 bytes");
      }
    }
  }
  for (const PoolTerms& p : map.pools) {
    const auto within = [&](std::int64_t v, std::int64_t most, std::string_view name) {
      if (v < 0 || v > most) fault("pool '" + p.name + "': ", std::string(name) + " must lie in 0..10^12");
    };
    constexpr std::int64_t kMost = 1'000'000'000'000;
    within(p.requests_per_minute, kMost, "requests_per_minute");
    within(p.tokens_per_minute, kMost, "tokens_per_minute");
    within(p.max_in_flight, kMost, "max_in_flight");
    within(p.input_price, kMost, "input_price");
    within(p.cached_input_price, kMost, "cached_input_price");
    within(p.output_price, kMost, "output_price");
  }
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "models: " + faults, kNoOffset};
}

inline std::string_view ModelRouter::intern(const std::string& name) {
  for (const auto& known : names_) {
    if (*known == name) return *known;
  }
  return *names_.emplace_back(std::make_unique<const std::string>(name));
}

inline Status ModelRouter::set_map(const ModelMap& map) {
  if (Status fine = validate(map); !fine) return fine;
  const std::lock_guard lock(control_);
  const detail::ModelView& before = view_.latest();
  auto next = std::make_unique<detail::ModelView>();
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  for (const PoolTerms& terms : map.pools) {
    detail::ModelView::Pool pool{intern(terms.name), terms.external,           0,
                                 terms.input_price,  terms.cached_input_price, terms.output_price};
    const detail::ModelView::Pool* known = detail::ModelView::find(before.pools, terms.name);
    if (known == nullptr) {
      quotas_.push_back(std::make_unique<detail::PoolQuota>());
      pool.quota = static_cast<std::uint32_t>(quotas_.size());
    } else {
      pool.quota = known->quota;
    }
    detail::PoolQuota& quota = *quotas_[pool.quota - 1];
    quota.requests.set(terms.requests_per_minute);
    quota.tokens.set(terms.tokens_per_minute);
    quota.max_in_flight.store(terms.max_in_flight, std::memory_order_relaxed);
    next->pools.push_back(pool);
  }
  std::sort(next->pools.begin(), next->pools.end(), by_name);
  for (const ModelEntry& m : map.models) {
    detail::ModelView::Entry entry{intern(m.name), {}, m.targets.size(), 0, m.choice};
    for (const auto* list : {&m.targets, &m.fallbacks}) {
      for (const ModelTarget& t : *list) {
        const auto* terms = detail::ModelView::find(next->pools, t.pool);
        detail::ModelView::Pool pool;
        pool.name = intern(t.pool);
        entry.targets.push_back({terms != nullptr ? *terms : pool, intern(t.model), t.weight});
      }
    }
    for (const ModelTarget& t : m.targets) entry.total_weight += t.weight;
    next->entries.push_back(std::move(entry));
  }
  std::sort(next->entries.begin(), next->entries.end(), by_name);
  for (const ClassRule& rule : map.classes) {
    if (!rule.may_leave) next->staying.push_back(rule.class_id);
  }
  std::sort(next->staying.begin(), next->staying.end());
  for (const auto& quota : quotas_) next->quotas.push_back(quota.get());
  next->unknown_names_are_pools = map.unknown_names_are_pools;
  next->seed = map.seed;
  view_.publish(std::move(next));
  return {};
}

inline ModelDecision ModelRouter::route(const Request& request, Nanos now) {
  const auto guard = domain_.pin();
  const detail::ModelView& view = view_.read(guard);
  std::array<Try, kMaxTargets> order;
  const detail::ModelView::Entry* entry = detail::ModelView::find(view.entries, request.model);
  if (entry == nullptr) entry = detail::ModelView::find(view.entries, "");
  if (entry == nullptr) {
    ModelDecision d;
    d.decision.verdict = Verdict::no_pool;
    if (!view.unknown_names_are_pools) return d;
    const auto* terms = detail::ModelView::find(view.pools, request.model);
    detail::ModelView::Target direct;
    if (terms != nullptr) direct.pool = *terms;
    else direct.pool.name = request.model;
    order[0].target = &direct;
    d = try_targets(view, request, order.data(), 1, now);
    if (terms == nullptr) d.pool = {};  // the caller's own memory: it knows the name
    return d;
  }
  const std::size_t count = entry->targets.size();
  for (std::size_t i = 0; i < count; ++i) order[i].target = &entry->targets[i];
  if (entry->alternatives > 1 && entry->choice == TargetChoice::weight) {
    const std::uint64_t key = request.session.empty() ? sequence_.fetch_add(1, std::memory_order_relaxed)
                                                      : XXH3_64bits(request.session.data(), request.session.size());
    std::uint64_t draw = mix(key ^ mix(view.seed)) % entry->total_weight;
    std::size_t drawn = 0;
    while (draw >= entry->targets[drawn].weight) draw -= entry->targets[drawn++].weight;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(drawn),
                order.begin() + static_cast<std::ptrdiff_t>(drawn) + 1);
  } else if (entry->alternatives > 1) {
    Request asked = request;
    asked.exact_pool = true;
    const std::int64_t output = request.max_output_tokens >= 0 ? request.max_output_tokens : 256;
    for (std::size_t i = 0; i < entry->alternatives; ++i) {
      const auto& pool = order[i].target->pool;
      asked.model = pool.name;
      const Decision seen = router_->peek(asked, now);
      const auto price = [](Tokens tokens, std::int64_t each) {
        return static_cast<double>(tokens.value) * static_cast<double>(each);
      };
      const double sum = price(seen.uncached_tokens(), pool.input_price) +
                         price(seen.total_cached(), pool.cached_price) + price(Tokens{output}, pool.output_price);
      order[i].price = static_cast<std::int64_t>(std::min(sum, 9e18));
    }
    // Insertion: few, and nothing is allocated.
    for (std::size_t i = 1; i < entry->alternatives; ++i) {
      for (std::size_t k = i; k > 0 && order[k].price < order[k - 1].price; --k) std::swap(order[k], order[k - 1]);
    }
  }
  return try_targets(view, request, order.data(), count, now);
}

inline ModelDecision ModelRouter::try_targets(const detail::ModelView& view, const Request& request, Try* order,
                                              std::size_t count, Nanos now) {
  ModelDecision d;
  Decision first;  // of the first target that could not take it
  bool failed = false;
  const bool stays = !view.may_leave(request.class_id);
  Request asked = request;
  asked.exact_pool = true;
  Nanos soonest{0};
  for (std::size_t i = 0; i < count; ++i) {
    const detail::ModelView::Target& target = *order[i].target;
    if (stays && target.pool.external) {
      ++d.forbidden;
      continue;
    }
    detail::PoolQuota* quota = target.pool.quota == 0 ? nullptr : view.quotas[target.pool.quota - 1];
    const std::int64_t charge = quota == nullptr ? 0 : detail::tokens_to_charge(request);
    const bool counted = quota != nullptr && quota->max_in_flight.load(std::memory_order_relaxed) > 0;
    const std::int64_t in_flight = counted ? router_->requests_in_flight(target.pool.name) : 0;
    Decision tried;
    const std::int64_t wait = quota == nullptr ? 0 : quota->take(charge, in_flight, now.value);
    if (wait != 0) {
      quota->over.fetch_add(1, std::memory_order_relaxed);
      tried.verdict = Verdict::saturated;
      tried.retry_after = Nanos{wait};
      tried.class_id = request.class_id;
      tried.priority = request.priority;
    } else {
      asked.model = target.pool.name;
      tried = router_->route(asked, now);
      if (tried.routed()) {
        d.decision = tried;
        d.ticket = {tried.ticket, target.pool.quota, charge};
        d.pool = target.pool.name;
        d.model = target.model;
        d.external = target.pool.external;
        d.target = static_cast<std::uint8_t>(i);
        if (quota != nullptr) quota->routed.fetch_add(1, std::memory_order_relaxed);
        return d;
      }
      if (quota != nullptr) quota->give_back(charge, now.value);
    }
    if (tried.retry_after > Nanos{0} && (soonest == Nanos{0} || tried.retry_after < soonest))
      soonest = tried.retry_after;
    if (!failed || (tried.verdict == Verdict::saturated && first.verdict != Verdict::saturated)) first = tried;
    failed = true;
    ++d.refused;
  }
  d.decision = first;
  d.decision.retry_after = soonest;
  if (!failed) d.decision.verdict = Verdict::no_permitted_pool;
  d.decision.class_id = request.class_id;
  d.decision.priority = request.priority;
  return d;
}

inline bool ModelRouter::first_token(const ModelTicket& ticket, Nanos now) {
  return router_->first_token(ticket.ticket, now);
}

inline bool ModelRouter::finish(const ModelTicket& ticket, const UsageCounts& usage, Nanos now) {
  if (!router_->finish(ticket.ticket, usage, now)) return false;
  if (ticket.pool == 0) return true;
  const auto guard = domain_.pin();
  const detail::ModelView& view = view_.read(guard);
  if (ticket.pool > view.quotas.size()) return true;
  detail::PoolQuota& quota = *view.quotas[ticket.pool - 1];
  if (usage.input_tokens < 0 || usage.output_tokens < 0) return true;
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::int64_t used = std::min(usage.input_tokens, kMost) + std::min(usage.output_tokens, kMost);
  quota.tokens.settle(used - ticket.charged_tokens, now.value);
  return true;
}

inline bool ModelRouter::fail(const ModelTicket& ticket, Outcome outcome, Nanos now, Nanos retry_after) {
  const bool open = router_->fail(ticket.ticket, outcome, now);
  if (ticket.pool == 0) return open;
  const auto guard = domain_.pin();
  const detail::ModelView& view = view_.read(guard);
  if (ticket.pool > view.quotas.size()) return open;
  detail::PoolQuota& quota = *view.quotas[ticket.pool - 1];
  if (retry_after > Nanos{0}) {
    const std::int64_t until = now.value + std::min(retry_after, seconds(86'400)).value;
    std::int64_t before = quota.blocked_until.load(std::memory_order_relaxed);
    while (until > before && !quota.blocked_until.compare_exchange_weak(before, until, std::memory_order_relaxed)) {}
  }
  if (open && detail::never_computed(outcome)) quota.tokens.settle(-ticket.charged_tokens, now.value);
  return open;
}

inline std::vector<PoolTermsReading> ModelRouter::readings() const {
  const auto guard = domain_.pin();
  const detail::ModelView& view = view_.read(guard);
  std::vector<PoolTermsReading> out;
  constexpr auto relaxed = std::memory_order_relaxed;
  for (const auto& pool : view.pools) {
    const detail::PoolQuota& q = *view.quotas[pool.quota - 1];
    out.push_back({std::string(pool.name), q.routed.load(relaxed), q.over.load(relaxed),
                   router_->requests_in_flight(pool.name), Nanos{q.blocked_until.load(relaxed)}});
  }
  return out;
}

}  // namespace warmroute
