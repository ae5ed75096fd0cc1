// SPDX-License-Identifier: Apache-2.0
//
// The specs that sweeps over collectives are made of.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/mesh/lanes.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule::testing {

inline constexpr std::array kAllOps = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                                       Op::reduce,     Op::all_to_all,     Op::barrier};

// Those that need no shape.
inline constexpr std::array kFlatAlgorithms = {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling,
                                               Algorithm::direct, Algorithm::one_shot};

// Those that a hierarchy can be made of.
inline constexpr std::array kPartAlgorithms = {
    Algorithm::ring,   Algorithm::tree,     Algorithm::halving_doubling,
    Algorithm::direct, Algorithm::one_shot, Algorithm::mesh};

CollectiveSpec flat_spec(Op op, Algorithm algorithm, int world, std::size_t count);

// Of no elements; `hosts` has the number of ranks of each.
CollectiveSpec hierarchical_spec(Op op, const std::vector<int>& hosts, Algorithm inner, Algorithm outer);

// Every rank brings the complete subtrees that it owns; or its lanes one by one.
CollectiveSpec lane_spec(Op op, const LaneOwnership& ownership, std::size_t count);
CollectiveSpec single_lane_spec(Op op, const LaneOwnership& ownership, std::size_t count);

// Counts that divide, do not divide, are smaller than the world, and are zero; without repetitions.
std::vector<std::size_t> counts_for(int world);

// All ranks where the operation has a root and the world is small; a few in large worlds; else just 0.
std::vector<Rank> roots_for(Op op, int world);

// Every rows x columns up to `most` ranks, as a grid and as a torus.
std::vector<GridShape> grids_up_to(int most);

// The same with a root, a grid and a count that does not divide: what to try where there is time for one.
CollectiveSpec large_spec(CollectiveSpec spec);

// Every way to put `world` ranks on hosts.
std::vector<std::vector<int>> all_host_shapes(int world);

// Every hosts x ranks up to `most` ranks, and uneven ones.
std::vector<std::vector<int>> host_shapes_up_to(int most);

// "all_reduce by tree, world 7, count 17, segments of 5"
std::string describe(const CollectiveSpec& spec);

std::vector<Program> programs_of(const CollectiveSpec& spec);

}  // namespace lockstep::schedule::testing
