// SPDX-License-Identifier: Apache-2.0
//
// Where each rank of a run stands: one coordinate on each axis of parallelism. Tensor is innermost (it talks
// most, so its ranks are neighbours), then data, then pipeline:
//   rank = (pipeline * data_size + data) * tensor_size + tensor
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep {

enum class Axis { pipeline = 0, data = 1, tensor = 2 };

inline constexpr std::array kAllAxes = {Axis::pipeline, Axis::data, Axis::tensor};

std::string_view name_of(Axis axis);

// What is asked for: sizes of 1 or more; one of them may be -1, which takes the rest of the workers.
struct MeshShape {
  int pipeline = 1;
  int data = -1;
  int tensor = 1;

  bool operator==(const MeshShape&) const = default;
};

struct Coordinates {
  int pipeline = 0;
  int data = 0;
  int tensor = 0;

  bool operator==(const Coordinates&) const = default;
};

class Mesh {
 public:
  // `world` workers in the given shape. UsageError if the sizes do not multiply to `world`; it names the
  // nearest numbers of workers and the nearest sizes that would, of tensor powers of two.
  Mesh(int world, const MeshShape& shape);

  int world() const { return size_[0] * size_[1] * size_[2]; }
  int size(Axis axis) const { return size_[static_cast<std::size_t>(axis)]; }

  // InternalError outside the mesh.
  Coordinates coordinates_of(Rank rank) const;
  Rank rank_of(const Coordinates& coordinates) const;

  // The ranks that differ from `rank` only on `axis`, in the order of that coordinate; size(axis) of them.
  std::vector<Rank> group_of(Rank rank, Axis axis) const;

  // All groups along the axis, in the order of their first ranks: every rank is in exactly one.
  std::vector<std::vector<Rank>> groups(Axis axis) const;

  // Which of groups(axis) the rank is in, and its place there: colour and key for Communicator::split.
  int group_index(Rank rank, Axis axis) const;
  int place_in_group(Rank rank, Axis axis) const;

 private:
  int stride(Axis axis) const;

  std::array<int, 3> size_;  // by Axis
};

}  // namespace lockstep
