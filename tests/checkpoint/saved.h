// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that tests write: tensors with values of their own, cut into pieces for some ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/shard_writer.h"
#include "lockstep/checkpoint/store/store.h"

namespace lockstep::checkpoint::testing {

struct FullTensor {
  LogicalTensor logical;
  std::vector<float> values;
};

struct CutPiece {
  std::size_t tensor = 0;
  Runs elements;
};
// By rank, the pieces in its file.
using Cut = std::vector<std::vector<CutPiece>>;

// Every element has a value that no other one has, and that depends on `variant`.
inline FullTensor full_tensor(std::string name, std::vector<std::int64_t> shape, int variant = 0) {
  FullTensor tensor = {.logical = {std::move(name), std::move(shape)}, .values = {}};
  const auto salt = static_cast<float>(variant) + static_cast<float>(tensor.logical.name.size()) / 64;
  for (std::size_t i = 0; i < tensor.logical.elements(); ++i) {
    tensor.values.push_back(static_cast<float>(i) * 256 + salt);
  }
  return tensor;
}

// In the order of their numbers.
inline std::vector<float> values_of(const FullTensor& tensor, const Runs& elements) {
  std::vector<float> values;
  each_numbered(elements, {0, elements.size()}, [&](std::size_t, std::size_t element, std::size_t count) {
    values.insert(values.end(), tensor.values.begin() + static_cast<std::ptrdiff_t>(element),
                  tensor.values.begin() + static_cast<std::ptrdiff_t>(element + count));
  });
  return values;
}

// All on one rank.
inline Cut uncut(const std::vector<FullTensor>& tensors) {
  Cut cut(1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t elements = tensors[i].values.size();
    cut[0].push_back({i, {.first = 0, .length = elements, .distance = elements, .count = 1}});
  }
  return cut;
}

inline Manifest manifest_of(const std::vector<FullTensor>& tensors, std::int64_t step) {
  Manifest manifest;
  manifest.progress = {.step = step,
                       .data_position = static_cast<std::uint64_t>(step) * 8,
                       .bad_steps = 1,
                       .bad_in_a_row = 0,
                       .loss_scale = 1024,
                       .good_steps = 3,
                       .loss = 2.5};
  manifest.lanes = 4;
  manifest.configuration = "[model]\nname = \"gpt\"\n";
  manifest.data_digest = "d";
  manifest.written_by = "a test";
  for (const FullTensor& tensor : tensors) manifest.tensors.push_back(tensor.logical);
  return manifest;
}

inline void write_rank(Disk& disk, const std::string& folder, int rank,
                       const std::vector<FullTensor>& tensors, const std::vector<CutPiece>& cut) {
  std::vector<float> values;
  std::vector<OutgoingPiece> pieces;
  for (const CutPiece& piece : cut) {
    const FullTensor& tensor = tensors[piece.tensor];
    pieces.push_back({tensor.logical.name, piece.elements, [&values, &tensor, runs = piece.elements] {
                        values = values_of(tensor, runs);
                        return std::span<const float>(values);
                      }});
  }
  write_shard(disk, folder, rank, pieces);
}

// Begins, writes all ranks and commits.
inline void save(CheckpointStore& store, Disk& disk, const std::vector<FullTensor>& tensors, const Cut& cut,
                 const Manifest& manifest, const std::string& id = "a") {
  const std::int64_t step = manifest.progress.step;
  store.begin(step, id);
  for (std::size_t rank = 0; rank < cut.size(); ++rank) {
    write_rank(disk, store.staging_folder(step, id), static_cast<int>(rank), tensors, cut[rank]);
  }
  store.commit(id, manifest, static_cast<int>(cut.size()));
}

inline std::vector<float> read_all(Checkpoint& checkpoint, const std::string& tensor) {
  std::vector<float> values(checkpoint.tensor(tensor).elements());
  checkpoint.read(tensor, {0, values.size()}, values);
  return values;
}

}  // namespace lockstep::checkpoint::testing
