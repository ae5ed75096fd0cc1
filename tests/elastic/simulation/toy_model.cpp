// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/toy_model.h"

#include "lockstep/base/philox.h"

namespace lockstep::elastic::simulation {
namespace {

std::size_t first_cell(int rank, int ranks) {
  return static_cast<std::size_t>(rank * kCells / ranks);
}

}  // namespace

std::uint64_t first_value(int cell) {
  return philox64(1, 0, static_cast<std::uint64_t>(cell));
}

Cells first_cells() {
  Cells cells;
  for (int cell = 0; cell < kCells; ++cell) cells[cell] = first_value(cell);
  return cells;
}

std::uint64_t gradient(int lane, std::int64_t step) {
  return philox64(2, static_cast<std::uint64_t>(lane), static_cast<std::uint64_t>(step));
}

std::uint64_t updated(std::uint64_t value, std::int64_t step, std::uint64_t sum) {
  return philox64(3, value, sum ^ static_cast<std::uint64_t>(step));
}

std::uint64_t sum_of_lanes(int rank, int ranks, std::int64_t step) {
  std::uint64_t sum = 0;
  for (int lane = rank; lane < kLanes; lane += ranks) sum += gradient(lane, step);
  return sum;
}

Range own_cells(int rank, int ranks) {
  return {first_cell(rank, ranks), first_cell(rank + 1, ranks)};
}

std::vector<Range> cells_to_hold(int rank, int ranks) {
  std::vector<Range> pieces = {own_cells(rank, ranks)};
  if (ranks > 1) pieces.push_back(own_cells((rank + ranks - 1) % ranks, ranks));
  return pieces;
}

Cells part_of(const Cells& cells, const std::vector<Range>& pieces) {
  Cells part;
  for (const Range& piece : pieces) {
    for (std::size_t cell = piece.begin; cell < piece.end; ++cell) {
      part[static_cast<int>(cell)] = cells.at(static_cast<int>(cell));
    }
  }
  return part;
}

std::uint32_t half_of(std::uint64_t cell, std::size_t tensor) {
  return static_cast<std::uint32_t>(cell >> 32 * tensor);
}

void set_half(std::uint64_t& cell, std::size_t tensor, std::uint32_t half) {
  const std::size_t shift = 32 * tensor;
  cell = (cell & ~(std::uint64_t{0xffffffff} << shift)) | std::uint64_t{half} << shift;
}

TensorPieces tensor_pieces(const std::vector<Range>& pieces) {
  TensorPieces all;
  for (const Range& piece : pieces) {
    for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
      all.push_back({tensor, {.first = piece.begin, .length = piece.size(), .distance = piece.size()}});
    }
  }
  return all;
}

bool are_all(const Cells& cells) {
  return cells.size() == kCells;
}

Undisturbed::Undisturbed(std::int64_t steps) {
  values_.emplace_back();
  for (int cell = 0; cell < kCells; ++cell) values_.back().push_back(first_value(cell));
  for (std::int64_t step = 1; step <= steps; ++step) {
    const std::uint64_t sum = sum_of_lanes(0, 1, step);
    std::vector<std::uint64_t> next = values_.back();
    for (std::uint64_t& value : next) value = updated(value, step, sum);
    values_.push_back(std::move(next));
  }
}

}  // namespace lockstep::elastic::simulation
