// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mesh.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Mesh any_mesh() {
  const MeshShape shape = {.pipeline = *rc::gen::inRange(1, 6),
                           .data = *rc::gen::inRange(1, 6),
                           .tensor = *rc::gen::inRange(1, 6)};
  return Mesh(shape.pipeline * shape.data * shape.tensor, shape);
}

int place_on(const Coordinates& coordinates, Axis axis) {
  if (axis == Axis::pipeline) return coordinates.pipeline;
  return axis == Axis::data ? coordinates.data : coordinates.tensor;
}

std::string refusal(int world, const MeshShape& shape) {
  try {
    const Mesh mesh(world, shape);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

RC_GTEST_PROP(Mesh, RanksAndCoordinatesAreInverse, ()) {
  const Mesh mesh = any_mesh();
  for (Rank rank = 0; rank < mesh.world(); ++rank) {
    const Coordinates at = mesh.coordinates_of(rank);
    RC_ASSERT(mesh.rank_of(at) == rank);
    RC_ASSERT(rank == (at.pipeline * mesh.size(Axis::data) + at.data) * mesh.size(Axis::tensor) + at.tensor);
  }
}

RC_GTEST_PROP(Mesh, AGroupVariesItsOwnAxisOnly, ()) {
  const Mesh mesh = any_mesh();
  const Rank rank = *rc::gen::inRange(0, mesh.world());
  for (const Axis axis : kAllAxes) {
    const std::vector<Rank> group = mesh.group_of(rank, axis);
    RC_ASSERT(static_cast<int>(group.size()) == mesh.size(axis));
    for (int place = 0; place < mesh.size(axis); ++place) {
      const Coordinates at = mesh.coordinates_of(group[static_cast<std::size_t>(place)]);
      for (const Axis other : kAllAxes) {
        RC_ASSERT(place_on(at, other) ==
                  (other == axis ? place : place_on(mesh.coordinates_of(rank), other)));
      }
    }
  }
}

RC_GTEST_PROP(Mesh, GroupsCutTheWorldIntoParts, ()) {
  const Mesh mesh = any_mesh();
  for (const Axis axis : kAllAxes) {
    const std::vector<std::vector<Rank>> groups = mesh.groups(axis);
    std::vector<int> seen(static_cast<std::size_t>(mesh.world()), 0);
    for (std::size_t index = 0; index < groups.size(); ++index) {
      for (std::size_t place = 0; place < groups[index].size(); ++place) {
        const Rank rank = groups[index][place];
        ++seen[static_cast<std::size_t>(rank)];
        RC_ASSERT(mesh.group_index(rank, axis) == static_cast<int>(index));
        RC_ASSERT(mesh.place_in_group(rank, axis) == static_cast<int>(place));
        RC_ASSERT(mesh.group_of(rank, axis) == groups[index]);
      }
    }
    RC_ASSERT(std::ranges::count(seen, 1) == mesh.world());
  }
}

RC_GTEST_PROP(Mesh, MinusOneTakesTheRest, ()) {
  const Mesh mesh = any_mesh();
  MeshShape shape = {.pipeline = mesh.size(Axis::pipeline),
                     .data = mesh.size(Axis::data),
                     .tensor = mesh.size(Axis::tensor)};
  int MeshShape::*const taken = *rc::gen::element(&MeshShape::pipeline, &MeshShape::data, &MeshShape::tensor);
  shape.*taken = -1;
  const Mesh filled(mesh.world(), shape);
  for (const Axis axis : kAllAxes) RC_ASSERT(filled.size(axis) == mesh.size(axis));
}

RC_GTEST_PROP(Mesh, AcceptsExactlyTheShapesThatFillTheWorld, ()) {
  const int world = *rc::gen::inRange(1, 40);
  const MeshShape shape = {.pipeline = *rc::gen::inRange(1, 8),
                           .data = *rc::gen::element(-1, 1, 2, 3, 4),
                           .tensor = *rc::gen::inRange(1, 8)};
  const int fixed = shape.pipeline * shape.tensor;
  const bool possible = shape.data == -1 ? world % fixed == 0 : fixed * shape.data == world;
  RC_ASSERT((refusal(world, shape) == "accepted") == possible);
}

TEST(Mesh, TensorRanksAreNeighbours) {
  const Mesh mesh(12, {.pipeline = 2, .data = 3, .tensor = 2});
  EXPECT_THAT(mesh.group_of(3, Axis::tensor), ElementsAre(2, 3));
  EXPECT_THAT(mesh.group_of(3, Axis::data), ElementsAre(1, 3, 5));
  EXPECT_THAT(mesh.group_of(3, Axis::pipeline), ElementsAre(3, 9));
}

TEST(Mesh, NamesTheNearestPossibilities) {
  EXPECT_EQ(
      refusal(6, {.pipeline = 1, .data = -1, .tensor = 4}),
      "a mesh of pipeline 1 x data -1 x tensor 4 cannot be filled by 6 workers; start 4 or 8 workers, or "
      "set tensor to 2, or set tensor to 1");
  EXPECT_EQ(
      refusal(6, {.pipeline = 4, .data = -1, .tensor = 4}),
      "a mesh of pipeline 4 x data -1 x tensor 4 cannot be filled by 6 workers; start 16 workers, or set "
      "pipeline to 3 and tensor to 2, or set pipeline to 3 and tensor to 1");
  EXPECT_EQ(refusal(6, {.pipeline = 2, .data = 2, .tensor = 2}),
            "a mesh of pipeline 2 x data 2 x tensor 2 does not have 6 workers; start 8 workers, or set "
            "pipeline to 1 and data to 3, or set data to 3 and tensor to 1");
  EXPECT_EQ(
      refusal(8, {.pipeline = 2, .data = 3, .tensor = 2}),
      "a mesh of pipeline 2 x data 3 x tensor 2 does not have 8 workers; start 12 workers, or set data to "
      "2, or set pipeline to 1 and data to 4");
  EXPECT_EQ(
      refusal(3, {.pipeline = 1, .data = -1, .tensor = 8}),
      "a mesh of pipeline 1 x data -1 x tensor 8 cannot be filled by 3 workers; start 8 workers, or set "
      "tensor to 1, or set pipeline to 3 and tensor to 1");
}

TEST(Mesh, CountsOneWorker) {
  EXPECT_EQ(
      refusal(2, {.pipeline = 1, .data = 1, .tensor = 1}),
      "a mesh of pipeline 1 x data 1 x tensor 1 does not have 2 workers; start 1 worker, or set data to "
      "2, or set tensor to 2");
  EXPECT_EQ(
      refusal(1, {.pipeline = 1, .data = 2, .tensor = 1}),
      "a mesh of pipeline 1 x data 2 x tensor 1 does not have 1 worker; start 2 workers, or set data to "
      "1");
  EXPECT_EQ(refusal(1, {.pipeline = 2, .data = -1, .tensor = 1}),
            "a mesh of pipeline 2 x data -1 x tensor 1 cannot be filled by 1 worker; start 2 workers, or set "
            "pipeline to 1");
}

TEST(Mesh, NamesNoWorldThatWouldBeRefusedAsWell) {
  EXPECT_EQ(
      refusal(4, {.pipeline = 1, .data = -1, .tensor = 3}),
      "a mesh of pipeline 1 x data -1 x tensor 3 cannot be filled by 4 workers; set tensor to 4, or set "
      "tensor to 2");
  EXPECT_EQ(refusal(4096, {.pipeline = 1, .data = -1, .tensor = 2000}).find("start"), std::string::npos);
  EXPECT_THAT(refusal(4096, {.pipeline = 1500, .data = -1, .tensor = 2}),
              HasSubstr("; start 3000 workers, or"));
  EXPECT_THAT(refusal(2, {.pipeline = 100, .data = 100, .tensor = 2}),
              HasSubstr("does not have 2 workers; set "));
}

TEST(Mesh, RefusesSizesThatAreNone) {
  EXPECT_THAT(refusal(0, {}), HasSubstr("at least one worker"));
  EXPECT_THAT(refusal(4, {.tensor = 0}), HasSubstr("the tensor size must be 1 or more"));
  EXPECT_THAT(refusal(4, {.pipeline = -2}), HasSubstr("the pipeline size"));
  EXPECT_THAT(refusal(4, {.pipeline = -1, .data = -1}), HasSubstr("only one axis can be -1"));
  EXPECT_THAT(refusal(4, {.pipeline = 1 << 20, .data = 1 << 20, .tensor = 1 << 30}),
              HasSubstr("does not have 4 workers"));
}

TEST(Mesh, RefusesRanksOutside) {
  const Mesh mesh(4, {});
  EXPECT_THROW(mesh.coordinates_of(4), InternalError);
  EXPECT_THROW(mesh.coordinates_of(-1), InternalError);
  EXPECT_THROW(mesh.rank_of({.tensor = 1}), InternalError);
}

}  // namespace
}  // namespace lockstep
