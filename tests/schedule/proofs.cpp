// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/proofs.h"

#include <string>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"

#include "tests/schedule/formulas.h"
#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

constexpr int kMostFailures = 20;  // of one test: the rest would say the same

}  // namespace

void Proofs::prove(const CollectiveSpec& spec) {
  ++proved_;
  if (failures_ >= kMostFailures) return;
  const CheckResult result = check(spec, programs_of(spec));
  const std::string wrong = result.violation ? result.violation->to_string() : difference_from_formulas(spec);
  if (wrong.empty()) return;
  ++failures_;
  ADD_FAILURE() << describe(spec) << "\n  " << wrong;
}

void Proofs::prove_with_roots(CollectiveSpec spec) {
  for (const Rank root : roots_for(spec.op, spec.world)) {
    spec.root = root;
    prove(spec);
  }
}

Proofs::~Proofs() {
  EXPECT_GT(proved_, 0);
  ::testing::Test::RecordProperty("proved", proved_);
}

}  // namespace lockstep::schedule::testing
