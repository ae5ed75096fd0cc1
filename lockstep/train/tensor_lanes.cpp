// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/tensor_lanes.h"

#include <set>
#include <vector>

namespace lockstep::train {
namespace {

// How many lanes have a parameter together, each number once.
std::vector<int> sharing_of(const model::Model& model, const parallel::DividedModel& divided) {
  std::set<int> counts;
  for (const model::ParameterSpec& spec : model::parameters_of(model)) {
    if (const int count = divided.sharing(spec.name); count > 1) counts.insert(count);
  }
  return {counts.begin(), counts.end()};
}

}  // namespace

TensorLanes::TensorLanes(const model::Model& model, const Division& division, const comm::Communicator& group,
                         const Options& options)
    : model_(model, division.rules, division.sizes, options.lanes),
      team_(group, {.lanes = options.lanes, .divides_tokens = options.divides_tokens}),
      shared_(group, options.lanes, sharing_of(model, model_)) {}

}  // namespace lockstep::train
