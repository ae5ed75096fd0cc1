// SPDX-License-Identifier: Apache-2.0
//
// halving_doubling: R. Rabenseifner's binary blocks. The world is cut into *blocks* of falling powers of two,
// as its binary digits say (7 = 4 + 2 + 1). The buffer is cut into as many *pieces* as the largest block has
// ranks.
//
//   up     Within a block rank i exchanges halves of what it holds with i ^ 1, i ^ 2, i ^ 4, ... and adds; so
//          it ends with one part of the block's sum. Then each block, the smallest first, sends its parts to
//          the next larger block, which adds them on its right. The largest block ends with the sum of all.
//   down   The same backwards, without adding.
//
// All other operations are one of the two, with chunks or the root at the other end. The order of addition is
// the canonical tree: splitting n at the largest power of two below it splits off exactly the largest block.
#include <bit>
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

struct Block {
  Rank first = 0;
  int bits = 0;  // it has 2^bits ranks
};

std::vector<Block> blocks_of(int world) {
  std::vector<Block> blocks;
  for (Rank first = 0; first < world;) {
    const unsigned size = std::bit_floor(static_cast<unsigned>(world - first));
    blocks.push_back({first, std::countr_zero(size)});
    first += static_cast<Rank>(size);
  }
  return blocks;
}

// The lowest `bits` bits of value in reverse order.
int reversed(int value, int bits) {
  int result = 0;
  for (int bit = 0; bit < bits; ++bit) result = result * 2 + (value >> bit & 1);
  return result;
}

class HalvingDoubling {
 public:
  explicit HalvingDoubling(const Task& task) : task_(task), blocks_(blocks_of(task.world())) {
    while (own_ + 1 < blocks_.size() && blocks_[own_ + 1].first <= task.rank) ++own_;
    index_ = task.rank - blocks_[own_].first;
  }

  void add_up(Program& program) const {
    for (int step = 0; step < bits(); ++step) add(program, halve(step));
    if (has_smaller()) {
      Round join;
      Move move = combine_in_order({local(data(part())), message(peer_in_smaller())}, data(part()));
      move.finish = task_.finish && !has_larger();
      add(join, std::move(move));
      add(program, std::move(join));
    }
    if (!has_larger()) return;
    Round hand_over;
    for (const auto& [peer, range] : parts_in_larger()) add(hand_over, send(data(range), {peer}));
    add(program, std::move(hand_over));
  }

  void add_down(Program& program) const {
    if (has_larger()) {
      Round take_over;
      for (const auto& [peer, range] : parts_in_larger()) add(take_over, receive(peer, data(range)));
      add(program, std::move(take_over));
    }
    for (int step = bits() - 1; step >= 0; --step) {
      Round round = double_up(step);
      if (step == bits() - 1 && has_smaller()) add(round, send(data(part()), {peer_in_smaller()}));
      add(program, std::move(round));
    }
  }

  // Between the parts of the largest block and whole chunks (or the whole buffer at the root).
  Round parts_to(const std::vector<Range>& targets) const {
    return redistribute(parts_of_largest(), targets);
  }
  Round parts_from(const std::vector<Range>& origins) const {
    return redistribute(origins, parts_of_largest());
  }

 private:
  int bits() const { return blocks_[own_].bits; }
  bool has_larger() const { return own_ > 0; }
  bool has_smaller() const { return own_ + 1 < blocks_.size(); }

  // What rank `index` of a block holds after `step` exchanges: bit 0 of the index chooses the half, bit 1 the
  // half of that, and so on.
  Range held(int index, int step) const {
    const int piece_bits = blocks_.front().bits;
    const int pieces_held = 1 << (piece_bits - step);
    const int first = reversed(index, step) * pieces_held;
    const std::size_t pieces = std::size_t{1} << piece_bits;
    return {chunk_range(task_.count, pieces, first).begin,
            chunk_range(task_.count, pieces, first + pieces_held - 1).end};
  }
  Range part() const { return held(index_, bits()); }

  Rank peer_in_smaller() const {
    const Block& smaller = blocks_[own_ + 1];
    return smaller.first + index_ % (1 << smaller.bits);
  }

  // This rank's part, as it is divided among ranks of the next larger block.
  std::vector<std::pair<Rank, Range>> parts_in_larger() const {
    const Block& larger = blocks_[own_ - 1];
    std::vector<std::pair<Rank, Range>> parts;
    for (int index = index_; index < 1 << larger.bits; index += 1 << bits()) {
      parts.emplace_back(larger.first + index, held(index, larger.bits));
    }
    return parts;
  }

  Round halve(int step) const {
    const int partner = index_ ^ (1 << step);
    const Slice kept = data(held(index_, step + 1));
    const Source own = local(kept);
    const Source theirs = message(blocks_[own_].first + partner);
    const bool last = step == bits() - 1 && !has_smaller() && !has_larger();
    Move sum = combine_in_order(index_ < partner ? std::vector{own, theirs} : std::vector{theirs, own}, kept);
    sum.finish = task_.finish && last;
    Round round;
    add(round, std::move(sum));
    add(round, send(data(held(partner, step + 1)), {blocks_[own_].first + partner}));
    return round;
  }

  Round double_up(int step) const {
    const int partner = index_ ^ (1 << step);
    const Rank peer = blocks_[own_].first + partner;
    Round round;
    add(round, receive(peer, data(held(partner, step + 1))));
    add(round, send(data(held(index_, step + 1)), {peer}));
    return round;
  }

  std::vector<Range> parts_of_largest() const {
    const Block& largest = blocks_.front();
    std::vector<Range> parts(task_.world(), Range{});
    for (int index = 0; index < 1 << largest.bits; ++index) parts[index] = held(index, largest.bits);
    return parts;
  }

  // Every rank p has origins[p] and needs targets[p].
  Round redistribute(const std::vector<Range>& origins, const std::vector<Range>& targets) const {
    Round round;
    for (Rank peer : all_but(task_.world(), task_.rank)) {
      add(round, receive(peer, data(intersection(origins[peer], targets[task_.rank]))));
    }
    for (Rank peer : all_but(task_.world(), task_.rank)) {
      add(round, send(data(intersection(origins[task_.rank], targets[peer])), {peer}));
    }
    return round;
  }

  const Task& task_;
  std::vector<Block> blocks_;
  std::size_t own_ = 0;  // the block of this rank
  int index_ = 0;        // of this rank within its block
};

}  // namespace

Program generate_halving_doubling(const Task& task) {
  if (task.op == Op::barrier) return barrier_by_dissemination(task);
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  const HalvingDoubling blocks(task);
  std::vector<Range> all_at_root(task.world(), Range{});
  all_at_root[task.root] = {0, task.count};

  if (task.op == Op::all_gather) add(program, blocks.parts_from(task.chunks));
  if (task.op == Op::broadcast) add(program, blocks.parts_from(all_at_root));
  const bool reduces = task.op != Op::all_gather && task.op != Op::broadcast;
  if (reduces) blocks.add_up(program);
  if (task.op == Op::reduce_scatter) add(program, blocks.parts_to(task.chunks));
  if (task.op == Op::reduce) add(program, blocks.parts_to(all_at_root));
  const bool spreads = task.op != Op::reduce_scatter && task.op != Op::reduce;
  if (spreads) blocks.add_down(program);
  return program;
}

}  // namespace lockstep::schedule
