// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/disk.h"
#include "lockstep/checkpoint/store/blocks.h"
#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint {

struct OutgoingPiece {
  std::string tensor;  // of the manifest
  Runs elements;
  // The values; called once, in the order of the pieces. What it returns is needed until the next call.
  std::function<std::span<const float>()> values;
};

// The name of a rank's file, and of its report until all are there.
std::string shard_name(int rank);
std::string report_name(int rank);

// Writes FOLDER/rank-RANK.safetensors and syncs it, then reads it again and compares: DataError when the disk
// has kept something else than it was given. Then FOLDER/rank-RANK.json, synced, with what is returned: its
// presence says that the file is whole. Pieces without elements are left out.
ShardFile write_shard(
    Disk& disk, const std::string& folder, int rank, const std::vector<OutgoingPiece>& pieces,
    const BetweenBlocks& between_blocks = [] {});

}  // namespace lockstep::checkpoint
