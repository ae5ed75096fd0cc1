// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: the algorithms that are not made of others, each as a generator of programs
// and the formulas for what these cost.
#pragma once

#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/program.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

// Every operation but all_to_all, which itinerary.h is about. Generators return the program of task.rank,
// formulas the cost of all ranks (task.rank does not matter).
// Formulas hold for at least two ranks and, except for a barrier, one element; below that nothing is sent.
struct FlatAlgorithm {
  Program (*generate)(const Task& task);
  PredictedCost (*formula)(const Task& task);
};

// All but hierarchical.
FlatAlgorithm flat_algorithm(Algorithm algorithm);

// The formula, or no cost where it does not apply.
PredictedCost cost_of(const FlatAlgorithm& algorithm, const Task& task);

// What every algorithm but one_shot must combine in a reduction: each element once for every rank but the
// first.
std::size_t least_combined(const Task& task);

Program generate_ring(const Task& task);
Program generate_line(const Task& task);  // like a ring without the link that closes it; see line.cpp
Program generate_tree(const Task& task);
Program generate_halving_doubling(const Task& task);
Program generate_direct(const Task& task);
Program generate_one_shot(const Task& task);
Program generate_mesh(const Task& task);

PredictedCost ring_cost(const Task& task);
PredictedCost line_cost(const Task& task);
PredictedCost tree_cost(const Task& task);
PredictedCost halving_doubling_cost(const Task& task);
PredictedCost direct_cost(const Task& task);
PredictedCost one_shot_cost(const Task& task);
PredictedCost mesh_cost(const Task& task);

}  // namespace lockstep::schedule
