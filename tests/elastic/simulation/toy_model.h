// SPDX-License-Identifier: Apache-2.0
//
// What is trained in a simulation: cells of 64 bits, each a function of all steps that were applied to it, in
// their order. Every step adds up something of every lane, so that a step that is left out, applied twice,
// summed over too few lanes or applied to the wrong state is seen in the cells for ever.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lockstep/elastic/healing.h"
#include "lockstep/mesh/range.h"

namespace lockstep::elastic::simulation {

inline constexpr int kCells = 12;
inline constexpr int kLanes = 12;

using Cells = std::map<int, std::uint64_t>;  // by number; those that somebody holds

std::uint64_t first_value(int cell);
Cells first_cells();
std::uint64_t gradient(int lane, std::int64_t step);
std::uint64_t updated(std::uint64_t value, std::int64_t step, std::uint64_t sum);

// The sum over the lanes that a rank of `ranks` owns.
std::uint64_t sum_of_lanes(int rank, int ranks, std::int64_t step);
// The cells that a rank owns, and those with the ones that it mirrors for the rank before it, as pieces.
Range own_cells(int rank, int ranks);
std::vector<Range> cells_to_hold(int rank, int ranks);
// The part of the cells that is in the pieces.
Cells part_of(const Cells& cells, const std::vector<Range>& pieces);

// The state as training has it: tensors of 32 bits, the lower half of each cell in the first one, as values,
// the upper half in the second, as what an optimizer remembers.
inline constexpr std::size_t kTensors = 2;
std::uint32_t half_of(std::uint64_t cell, std::size_t tensor);
void set_half(std::uint64_t& cell, std::size_t tensor, std::uint32_t half);
// The pieces of both tensors: those of a range follow each other.
TensorPieces tensor_pieces(const std::vector<Range>& pieces);

bool are_all(const Cells& cells);

// The cells of a run that nothing has disturbed, after each step from 0 on.
class Undisturbed {
 public:
  explicit Undisturbed(std::int64_t steps);
  std::uint64_t value(std::int64_t step, int cell) const {
    return values_[static_cast<std::size_t>(step)][cell];
  }

 private:
  std::vector<std::vector<std::uint64_t>> values_;
};

}  // namespace lockstep::elastic::simulation
