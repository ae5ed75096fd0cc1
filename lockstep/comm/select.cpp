// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/select.h"

namespace lockstep::comm {

using schedule::Algorithm;
using schedule::CollectiveSpec;

CollectiveSpec complete_spec(CollectiveSpec spec, DType, const Topology& topology) {
  spec.grid = {.rows = 1, .columns = topology.world(), .torus = false};
  spec.ranks_per_host = {topology.world()};
  return spec;
}

std::vector<Candidate> candidates(const CollectiveSpec& wanted, DType dtype, const Topology& topology,
                                  const LinkModel&, bool) {
  CollectiveSpec spec = wanted;
  const bool small = wanted.count * size_of(dtype) <= 16384 && wanted.pieces.empty();
  spec.algorithm = small && supports(Algorithm::one_shot, spec.op) ? Algorithm::one_shot : Algorithm::direct;
  return {{.spec = complete_spec(spec, dtype, topology), .predicted_us = 0}};
}

}  // namespace lockstep::comm
