#include <algorithm>
#include <tuple>

#include "ingest/metrics_resolve.hpp"

namespace warmroute::metrics {

std::uint32_t Places::add(const Owner& owner) {
  places_.push_back(owner);
  return static_cast<std::uint32_t>(places_.size() - 1);
}

// returns: the one place that fits; kNone if there are none or several.
template <class Fits>
std::uint32_t Places::only(Fits fits) const {
  std::uint32_t found = kNone;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!fits(places_[i])) continue;
    if (found != kNone) return kNone;
    found = static_cast<std::uint32_t>(i);
  }
  return found;
}

void Places::attach(std::uint32_t owner, std::uint32_t place, const Owner& said) {
  place_of_[owner] = place;
  if (place != kNone) {
    if (places_[place].model.empty()) places_[place].model = said.model;
    return;
  }
  if (!said.model.empty() && !mixed_) {
    mixed_ = !shared_model_.empty() && shared_model_ != said.model;
    shared_model_ = mixed_ ? std::string_view() : said.model;
  }
  shared_ = true;
}

// What names both model and rank is a place. What names less belongs to the place that fits, if it is the only one:
// vLLM's cache configuration has no model, SGLang's counters have no rank, LoRA series have neither.
void Places::build(std::span<const Owner> owners, std::uint16_t table) {
  place_of_.assign(owners.size(), kNone);
  places_.clear();
  shared_ = false;
  shared_model_ = {};
  mixed_ = false;
  const bool ranked =
      std::any_of(owners.begin(), owners.end(), [&](const Owner& o) { return o.table == table && o.rank.has_value(); });
  const auto each = [&](auto wanted, auto&& act) {
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i].table == table && wanted(owners[i])) act(static_cast<std::uint32_t>(i), owners[i]);
    }
  };
  each([&](const Owner& o) { return !o.model.empty() && (o.rank.has_value() || !ranked); },
       [&](std::uint32_t i, const Owner& o) { place_of_[i] = add(o); });
  each([&](const Owner& o) { return o.model.empty() && o.rank.has_value(); },
       [&](std::uint32_t i, const Owner& o) {
         const auto same = [&](const Owner& p) { return p.rank == o.rank; };
         if (std::none_of(places_.begin(), places_.end(), same)) place_of_[i] = add(o);
         else attach(i, only(same), o);
       });
  each([&](const Owner& o) { return !o.rank.has_value() && (ranked || o.model.empty()); },
       [&](std::uint32_t i, const Owner& o) {
         if (places_.empty()) {
           place_of_[i] = add(o);
           return;
         }
         attach(i, only([&](const Owner& p) { return o.model.empty() || p.model.empty() || p.model == o.model; }), o);
       });
  sort();
}

void Places::sort() {
  order_.resize(places_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::tie(places_[a].model, places_[a].rank) < std::tie(places_[b].model, places_[b].rank);
  });
  target_.resize(places_.size());
  sorted_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    target_[order_[i]] = static_cast<std::uint32_t>(i);
    sorted_.push_back(places_[order_[i]]);
  }
  places_.swap(sorted_);
  for (std::uint32_t& place : place_of_) {
    if (place != kNone) place = target_[place];
  }
}

}  // namespace warmroute::metrics
