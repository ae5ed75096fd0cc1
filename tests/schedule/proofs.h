// SPDX-License-Identifier: Apache-2.0
//
// What the sweeps over collectives do with a spec.
#pragma once

#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule::testing {

// Proves the programs of one spec after another; the test fails for each that is refused, and for formulas
// that say something else than docs/algorithms.md.
class Proofs {
 public:
  Proofs() = default;
  Proofs(const Proofs&) = delete;
  Proofs& operator=(const Proofs&) = delete;
  ~Proofs();

  void prove(const CollectiveSpec& spec);
  void prove_with_roots(CollectiveSpec spec);  // of roots_for()

 private:
  int proved_ = 0;
  int failures_ = 0;
};

}  // namespace lockstep::schedule::testing
