// SPDX-License-Identifier: Apache-2.0
//
// The sums of docs/algorithms.md for tree, mesh, hierarchical and all_to_all, a second time: predict_cost()
// takes them from the trees and the lists of phases that programs are made of, these know the text only.
#pragma once

#include <string>

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/cost.h"

namespace lockstep::schedule::testing {

// What ring, direct, one_shot and halving_doubling do as parts of a hierarchy is taken from the library,
// which needs no generator for it.
PredictedCost documented_cost(const CollectiveSpec& spec);

// What predict_cost() says otherwise; empty if nothing, and where it needs no generator.
std::string difference_from_formulas(const CollectiveSpec& spec);

}  // namespace lockstep::schedule::testing
