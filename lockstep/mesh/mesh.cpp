// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mesh.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/world.h"

namespace lockstep {
namespace {

using Sizes = std::array<int, 3>;

constexpr int kTheRest = -1;

std::string described(const Sizes& sizes) {
  return fmt::format("pipeline {} x data {} x tensor {}", sizes[0], sizes[1], sizes[2]);
}

// The product of the sizes that are given, saturated: only equality with a world (an int) matters.
std::int64_t fixed_product(const Sizes& sizes) {
  std::int64_t product = 1;
  for (const int size : sizes) {
    if (size != kTheRest) product *= size;
    if (product > INT32_MAX) return std::int64_t{INT32_MAX} + 1;
  }
  return product;
}

// Layers are computed by a power of two of workers.
bool can_divide_layers(int tensor) {
  return tensor == kTheRest || std::has_single_bit(static_cast<unsigned>(tensor));
}

// Empty when no number of workers would do.
std::string possible_worlds(int world, const Sizes& sizes, bool multiples) {
  const std::int64_t product = fixed_product(sizes);
  if (product > kMaxWorld || !can_divide_layers(sizes[2])) return "";
  const std::int64_t below = multiples ? world / product * product : 0;
  if (below == 0) return fmt::format(" start {}", counted(product, "worker"));
  if (below + product > kMaxWorld) return fmt::format(" start {}", counted(below, "worker"));
  return fmt::format(" start {} or {} workers", below, below + product);
}

// All ways to share out the world.
std::vector<Sizes> possible_sizes(int world) {
  std::vector<Sizes> possible;
  for (int pipeline = 1; pipeline <= world; ++pipeline) {
    if (world % pipeline != 0) continue;
    const int others = world / pipeline;
    for (int tensor = 1; others % tensor == 0; tensor *= 2) {
      possible.push_back({pipeline, others / tensor, tensor});
    }
  }
  return possible;
}

// How often the sizes that are given are doubled or halved, together.
double distance(const Sizes& from, const Sizes& to) {
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != kTheRest) sum += std::abs(std::log2(static_cast<double>(to[i]) / from[i]));
  }
  return sum;
}

// "pipeline to 3 and tensor to 2"
std::string changes(const Sizes& from, const Sizes& to) {
  std::vector<std::string> texts;
  for (const Axis axis : kAllAxes) {
    const auto index = static_cast<std::size_t>(axis);
    if (from[index] == kTheRest || from[index] == to[index]) continue;
    texts.push_back(fmt::format("{} to {}", name_of(axis), to[index]));
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string nearest_sizes(int world, const Sizes& sizes) {
  constexpr std::size_t kNamed = 2;
  std::vector<Sizes> possible = possible_sizes(world);
  std::ranges::stable_sort(possible, {}, [&](const Sizes& one) { return distance(sizes, one); });
  if (possible.size() > kNamed) possible.resize(kNamed);
  std::string text;
  for (const Sizes& one : possible) text += fmt::format(", or set {}", changes(sizes, one));
  return text;
}

[[noreturn]] void refuse(int world, const Sizes& sizes, bool has_rest) {
  std::string advice = possible_worlds(world, sizes, has_rest) + nearest_sizes(world, sizes);
  if (advice.starts_with(", or")) advice = advice.substr(4);
  throw UsageError(fmt::format("a mesh of {} {} {};{}", described(sizes),
                               has_rest ? "cannot be filled by" : "does not have", counted(world, "worker"),
                               advice));
}

}  // namespace

std::string_view name_of(Axis axis) {
  switch (axis) {
    case Axis::pipeline:
      return "pipeline";
    case Axis::data:
      return "data";
    case Axis::tensor:
      return "tensor";
  }
  return "";
}

Mesh::Mesh(int world, const MeshShape& shape) : size_{shape.pipeline, shape.data, shape.tensor} {
  if (world < 1) throw UsageError(fmt::format("a mesh needs at least one worker, not {}", world));
  int rest_axes = 0;
  for (const Axis axis : kAllAxes) {
    if (size(axis) == kTheRest) {
      ++rest_axes;
    } else if (size(axis) < 1) {
      throw UsageError(fmt::format("the {} size must be 1 or more, or -1 for the rest of the workers, not {}",
                                   name_of(axis), size(axis)));
    }
  }
  if (rest_axes > 1) {
    throw UsageError(fmt::format("only one axis can be -1 (the rest of the workers), not {}: {}", rest_axes,
                                 described(size_)));
  }
  const std::int64_t product = fixed_product(size_);
  const bool fits = rest_axes == 0 ? product == world : world % product == 0;
  if (!fits) refuse(world, size_, rest_axes == 1);
  for (int& size : size_) {
    if (size == kTheRest) size = static_cast<int>(world / product);
  }
}

int Mesh::stride(Axis axis) const {
  int ranks = 1;
  for (std::size_t inner = static_cast<std::size_t>(axis) + 1; inner < size_.size(); ++inner) {
    ranks *= size_[inner];
  }
  return ranks;
}

int Mesh::place_in_group(Rank rank, Axis axis) const {
  LOCKSTEP_CHECK(rank >= 0 && rank < world(), fmt::format("rank {} of {}", rank, world()));
  return rank / stride(axis) % size(axis);
}

Coordinates Mesh::coordinates_of(Rank rank) const {
  return {.pipeline = place_in_group(rank, Axis::pipeline),
          .data = place_in_group(rank, Axis::data),
          .tensor = place_in_group(rank, Axis::tensor)};
}

Rank Mesh::rank_of(const Coordinates& at) const {
  const auto inside = [&](int place, Axis axis) { return place >= 0 && place < size(axis); };
  LOCKSTEP_CHECK(
      inside(at.pipeline, Axis::pipeline) && inside(at.data, Axis::data) && inside(at.tensor, Axis::tensor),
      fmt::format("({}, {}, {}) in {}", at.pipeline, at.data, at.tensor, described(size_)));
  return (at.pipeline * size(Axis::data) + at.data) * size(Axis::tensor) + at.tensor;
}

std::vector<Rank> Mesh::group_of(Rank rank, Axis axis) const {
  const int step = stride(axis);
  const Rank first = rank - place_in_group(rank, axis) * step;
  std::vector<Rank> group;
  for (int place = 0; place < size(axis); ++place) group.push_back(first + place * step);
  return group;
}

int Mesh::group_index(Rank rank, Axis axis) const {
  LOCKSTEP_CHECK(rank >= 0 && rank < world(), fmt::format("rank {} of {}", rank, world()));
  const int step = stride(axis);
  return rank / (step * size(axis)) * step + rank % step;
}

std::vector<std::vector<Rank>> Mesh::groups(Axis axis) const {
  std::vector<std::vector<Rank>> all;
  for (Rank rank = 0; rank < world(); ++rank) {
    if (place_in_group(rank, axis) == 0) all.push_back(group_of(rank, axis));
  }
  return all;
}

}  // namespace lockstep
