// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/generate.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/all_to_all.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/hierarchical.h"
#include "lockstep/schedule/collective/lane_tree.h"

namespace lockstep::schedule {

Program generate(const CollectiveSpec& spec, Rank rank) {
  validate(spec);
  if (rank < 0 || rank >= spec.world) {
    throw UsageError(
        fmt::format("There is no rank {} in a world of {}; ranks count from 0.", rank, spec.world));
  }
  if (!spec.pieces.empty()) return generate_lane_tree(spec, rank);
  if (spec.op == Op::all_to_all) return generate_all_to_all(spec, rank);
  const Task task = task_of(spec, rank);
  if (spec.algorithm != Algorithm::hierarchical) return flat_algorithm(spec.algorithm).generate(task);
  Program program = empty_program(task);
  append(program, hierarchical_phases(spec));
  return program;
}

}  // namespace lockstep::schedule
