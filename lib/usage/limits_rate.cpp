#include "usage/limits_rate.hpp"

#include <algorithm>

namespace warmroute::usage {

std::uint64_t RateCharges::add(Ticks amount, Ticks now) {
  elapse(now);
  arrival_ = std::max(arrival_, now) + amount;
  const std::uint64_t order = ++last_order_;
  if (amount == 0) {
    if (!marks_.empty()) ++marks_.back().open;
  } else if (!marks_.empty() && marks_.back().open == 0) {
    Mark& top = marks_.back();
    top = {top.ahead + amount, order, 1};
  } else {
    if (marks_.size() == marks_.capacity()) make_room();
    marks_.push_back({amount, order, 1});
  }
  return order;
}

void RateCharges::add_final(Ticks amount, Ticks now) {
  elapse(now);
  arrival_ = std::max(arrival_, now) + amount;
  if (!marks_.empty() && marks_.back().open == 0) {
    marks_.back().ahead += amount;
  } else {
    if (marks_.size() == marks_.capacity()) make_room();
    marks_.push_back({amount, ++last_order_, 0});
  }
}

void RateCharges::give_back(std::uint64_t order, Ticks amount, Ticks now) noexcept {
  elapse(now);
  const std::size_t end = find(order);
  std::size_t first = end;  // of what is used up
  for (Ticks left = amount; first != 0 && left != 0;) {
    Mark& mark = marks_[first - 1];
    const Ticks eaten = std::min(mark.ahead, left);
    mark.ahead -= eaten;
    left -= eaten;
    arrival_ -= eaten;
    if (mark.ahead != 0) break;
    --first;
  }
  erase(first, end);
}

void RateCharges::close(std::uint64_t order) noexcept {
  if (const std::size_t at = find(order); at != 0) --marks_[at - 1].open;
}

void RateCharges::rescale(Ticks from, Ticks to, Ticks now) noexcept {
  elapse(now);
  if (from == to || marks_.empty()) return;
  constexpr Ticks kMostAhead = Ticks{1} << 110;
  Ticks sum = 0;
  for (Mark& mark : marks_) {
    const Ticks units = (mark.ahead + from - 1) / from;
    mark.ahead = units > kMostAhead / to ? kMostAhead : units * to;
    sum += mark.ahead;
  }
  arrival_ = elapsed_ + sum;
}

void RateCharges::elapse(Ticks now) noexcept {
  if (now <= elapsed_) return;
  Ticks left = now - elapsed_;
  elapsed_ = now;
  std::size_t end = marks_.size();
  for (; end != 0 && left != 0; --end) {
    Mark& mark = marks_[end - 1];
    if (mark.ahead > left) {
      mark.ahead -= left;
      break;
    }
    left -= mark.ahead;
  }
  erase(end, marks_.size());
}

// Marks that have nothing ahead: their charges belong to the next older one from now on.
void RateCharges::erase(std::size_t first, std::size_t end) noexcept {
  if (first == end) return;
  std::uint32_t open = 0;
  for (std::size_t i = first; i < end; ++i) open += marks_[i].open;
  if (first != 0) marks_[first - 1].open += open;
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(first), marks_.begin() + static_cast<std::ptrdiff_t>(end));
}

std::size_t RateCharges::find(std::uint64_t order) const noexcept {
  if (!marks_.empty() && marks_.back().order <= order) return marks_.size();
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), order,
                                      [](std::uint64_t wanted, const Mark& mark) { return wanted < mark.order; });
  return static_cast<std::size_t>(after - marks_.begin());
}

// Marks without open charges become part of the next newer one; what is left is at most half of the room, so that this is
// rare.
void RateCharges::make_room() {
  std::size_t kept = 0;
  Ticks lent = 0;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].open == 0 && i + 1 != marks_.size()) {
      lent += marks_[i].ahead;
      continue;
    }
    marks_[kept] = marks_[i];
    marks_[kept++].ahead += lent;
    lent = 0;
  }
  marks_.resize(kept);
  if (marks_.size() * 2 >= marks_.capacity()) marks_.reserve(std::max<std::size_t>(4, marks_.capacity() * 2));
}

}  // namespace warmroute::usage
