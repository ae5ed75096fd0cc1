// SPDX-License-Identifier: Apache-2.0
//
// The cells in checkpoints of the real format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/checkpoint/store/shard_writer.h"

#include "tests/elastic/simulation/toy_model.h"

namespace lockstep::elastic::simulation {

// Without files.
checkpoint::Manifest manifest_of(std::int64_t step);
// What a rank writes of the cells that it owns; they are copied.
std::vector<checkpoint::OutgoingPiece> outgoing_pieces(const Cells& cells, Range own);

// The cells of a checkpoint by its folder, read by the real reader. Errors as Checkpoint.
Cells read_cells(const std::string& folder, const std::vector<Range>& pieces);
// All of them; everything in the folder is compared with its hashes.
Cells read_verified(const std::string& folder);

}  // namespace lockstep::elastic::simulation
