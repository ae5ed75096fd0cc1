// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/generate.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

Program generate_flat(Algorithm algorithm, const Task& task) {
  switch (algorithm) {
    case Algorithm::ring:
      return generate_ring(task);
    case Algorithm::tree:
      return generate_tree(task);
    case Algorithm::halving_doubling:
      return generate_halving_doubling(task);
    case Algorithm::direct:
      return generate_direct(task);
    case Algorithm::one_shot:
      return generate_one_shot(task);
    case Algorithm::mesh:
      return generate_mesh(task);
    case Algorithm::hierarchical:
      break;
  }
  check_failed("algorithm is flat", "a part of a hierarchy cannot be a hierarchy");
}

Program generate(const CollectiveSpec& spec, Rank rank) {
  validate(spec);
  if (rank < 0 || rank >= spec.world) {
    throw UsageError(
        fmt::format("There is no rank {} in a world of {}; ranks count from 0.", rank, spec.world));
  }
  if (!spec.pieces.empty()) return generate_lane_tree(spec, rank);
  if (spec.algorithm == Algorithm::hierarchical) return generate_hierarchical(spec, rank);
  const bool rooted = spec.op == Op::broadcast || spec.op == Op::reduce;
  return generate_flat(spec.algorithm, {.op = spec.op,
                                        .rank = rank,
                                        .root = rooted ? spec.root : 0,
                                        .count = spec.count,
                                        .chunks = even_chunks(spec.count, spec.world),
                                        .segment_elements = spec.segment_elements,
                                        .grid = spec.grid});
}

}  // namespace lockstep::schedule
