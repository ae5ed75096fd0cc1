// SPDX-License-Identifier: Apache-2.0
//
// A collective as data: the program of one rank, a list of rounds of moves. Generators (generate.h) return
// programs, check/ proves them, comm/ runs them, sim/ times them.
//
// A *move* makes one value (a run of elements) out of its sources, stores it in a local slice and may send it
// on. Plain cases:
//
//   send    {local slice}           -> peers
//   recv    {message of a peer}     -> local slice
//   reduce  {local slice, message}  -> local slice (-> peers)
//
// Messages from rank a to rank b are matched in order: the k-th message that a's program sends to b is the
// k-th that b's program takes from a. (Inside a round: in the order of the moves, then of send_to or of
// sources.) They also travel in that order: none is offered before the one numbered before it, and none is
// taken before it.
//
// A *round* starts when the round before it has ended on this rank. All its moves start together; a move
// fires as soon as all its messages have been offered; the round ends when every move has fired and every
// message that it sends has been taken. Programs must not rely on any buffering between ranks: a sender may
// have to wait until the receiver has reached the round with the matching receive.
//
// Rules (check/ enforces them):
//  - sources, destination and messages of a move all have the same number of elements, at least one;
//  - a move that sends and does not merely forward one local slice has a destination (it is sent from there);
//  - inside a move the destination may equal a local source exactly, and otherwise overlaps none;
//  - inside a round no move writes what another move of the round reads or writes, with one exception, the
//    in-place exchange: a slice that is sent to peer p may be received back from p in the same round, if p
//    makes the value it returns from that very message (then the bytes have been taken before the new ones
//    can exist).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"

namespace lockstep::schedule {

inline constexpr Rank kLocal = -1;

// The most sources of a move: what the kernels combine in one pass.
inline constexpr std::size_t kMaxSources = 4096;

// A piece of one of the buffers that the program is bound to.
struct Slice {
  std::uint32_t buffer = 0;
  Range range;

  bool operator==(const Slice&) const = default;
};

// One operand of a move: a local slice (from == kLocal) or the next message of a peer.
// Operands are combined on a stack: push this one, then `merges` times replace the top two by (lower +
// upper). After the last operand one value is left. So {a,0} {b,1} is a+b, and {a,0} {b,1} {c,0} {d,2} is
// (a+b)+(c+d).
struct Source {
  Rank from = kLocal;
  Slice slice;  // only when local
  std::uint8_t merges = 0;

  bool operator==(const Source&) const = default;
};

struct Move {
  std::vector<Source> sources;
  std::optional<Slice> into;
  std::vector<Rank> send_to;
  // The value is a finished reduction: an average is divided here. Set exactly once on the way to every
  // result.
  bool finish = false;

  bool operator==(const Move&) const = default;
};

using Round = std::vector<Move>;

// What the caller binds: the size of each buffer in elements. Buffers from `scratch_from` on are scratch,
// provided by the executor with unspecified contents; those before it are the caller's, and what a program
// leaves in parts that the collective's contract (collective.h) does not name is unspecified.
struct Program {
  Rank rank = 0;
  int world = 1;
  std::vector<std::size_t> buffer_elements;
  std::uint32_t scratch_from = 0;
  std::vector<Round> rounds;

  bool operator==(const Program&) const = default;
};

// The number of elements of the value that a move makes.
std::size_t elements_of(const Move& move);

}  // namespace lockstep::schedule
