// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/checkpoints.h"

#include <array>
#include <bit>

#include "lockstep/checkpoint/store/reader.h"

namespace lockstep::elastic::simulation {
namespace {

constexpr std::array<const char*, kTensors> kNames = {"model.cells", "optimizer.m.cells"};
constexpr Range kAll = {0, kCells};

Cells read_from(checkpoint::Checkpoint& from, const std::vector<Range>& pieces) {
  Cells cells;
  for (const Range& piece : pieces) {
    for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
      std::vector<float> values(piece.size());
      from.read(kNames[tensor], piece, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        set_half(cells[static_cast<int>(piece.begin + i)], tensor, std::bit_cast<std::uint32_t>(values[i]));
      }
    }
  }
  return cells;
}

}  // namespace

checkpoint::Manifest manifest_of(std::int64_t step) {
  checkpoint::Manifest manifest;
  manifest.progress.step = step;
  manifest.lanes = kLanes;
  manifest.written_by = "a simulation";
  for (const char* name : kNames) manifest.tensors.push_back({name, {kCells}});
  return manifest;
}

std::vector<checkpoint::OutgoingPiece> outgoing_pieces(const Cells& cells, Range own) {
  std::vector<checkpoint::OutgoingPiece> pieces;
  for (const TensorPiece& piece : tensor_pieces({own})) {
    std::vector<float> values;
    for (std::size_t cell = own.begin; cell < own.end; ++cell) {
      values.push_back(std::bit_cast<float>(half_of(cells.at(static_cast<int>(cell)), piece.tensor)));
    }
    pieces.push_back({kNames[piece.tensor], piece.elements,
                      [values = std::move(values)] { return std::span<const float>(values); }});
  }
  return pieces;
}

Cells read_cells(const std::string& folder, const std::vector<Range>& pieces) {
  checkpoint::Checkpoint from(folder);
  return read_from(from, pieces);
}

Cells read_verified(const std::string& folder) {
  checkpoint::Checkpoint from(folder);
  from.verify();
  return read_from(from, {kAll});
}

}  // namespace lockstep::elastic::simulation
