// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/toy_model.h"

#include "lockstep/base/philox.h"

namespace lockstep::elastic::simulation {
namespace {

int first_cell(int rank, int ranks) {
  return rank * kCells / ranks;
}

void add_own(std::vector<int>& cells, int rank, int ranks) {
  for (int cell = first_cell(rank, ranks); cell < first_cell(rank + 1, ranks); ++cell) cells.push_back(cell);
}

}  // namespace

std::uint64_t first_value(int cell) {
  return philox64(1, 0, static_cast<std::uint64_t>(cell));
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

std::vector<int> own_cells(int rank, int ranks) {
  std::vector<int> cells;
  add_own(cells, rank, ranks);
  return cells;
}

std::vector<int> cells_to_hold(int rank, int ranks) {
  std::vector<int> cells = own_cells(rank, ranks);
  if (ranks > 1) add_own(cells, (rank + ranks - 1) % ranks, ranks);
  return cells;
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
