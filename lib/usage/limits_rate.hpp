// What a rate limit has charged and what of it can still be given back. Private to lib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warmroute::usage {

__extension__ typedef __int128 Ticks;  // nanoseconds << 32: a token at 10^9 a minute is 0.06 ns

// GCRA whose charges are corrected afterwards as if the truth had been charged from the start: no refund is lost, and none
// gives more. With charges d_i at times t_i all will have drained at max over i of (t_i + d_i + d_i+1 + ...). So a refund of
// charge j moves that end by what the end lies behind the one that would stand had nothing been charged up to j. The
// differences between these ends are kept, one for each open charge: time eats the newest first, a refund its own and then
// older ones. Charges that are over lend theirs to the next newer one.
// cost: a few operations; of a refund, plus moving the marks that are newer (32 bytes for each open charge not yet drained).
class RateCharges {
 public:
  [[nodiscard]] Ticks arrival() const noexcept { return arrival_; }  // when all that was charged will have drained

  // returns: the charge's order, for what follows. alloc: as the number of open charges grows.
  std::uint64_t add(Ticks amount, Ticks now);
  // More than was charged: nobody gives it back.
  void add_final(Ticks amount, Ticks now);
  // Of a charge that is not closed, no more than it was.
  void give_back(std::uint64_t order, Ticks amount, Ticks now) noexcept;
  // A unit takes `to` from now on instead of `from`: what is charged stays as many units.
  void rescale(Ticks from, Ticks to, Ticks now) noexcept;
  // Nothing will be given back of it any more. Once for each charge.
  void close(std::uint64_t order) noexcept;

 private:
  struct Mark {
    Ticks ahead;          // by how much the end would move at most
    std::uint64_t order;  // of its oldest charge; those up to the next mark's belong here, too
    std::uint32_t open;   // charges that belong here and are not closed
  };

  void elapse(Ticks now) noexcept;
  void erase(std::size_t first, std::size_t end) noexcept;
  [[nodiscard]] std::size_t find(std::uint64_t order) const noexcept;  // the mark's number + 1; 0: none
  void make_room();

  // Invariant: what the marks have ahead is arrival_ - elapsed_, or nothing where that is negative.
  Ticks arrival_ = 0;
  Ticks elapsed_ = 0;
  std::uint64_t last_order_ = 0;
  std::vector<Mark> marks_;  // oldest first
};

}  // namespace warmroute::usage
