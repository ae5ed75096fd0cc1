// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include "lockstep/schedule/check/check.h"

namespace lockstep::schedule {

// Keeps the violation that comes first by rank, round and move; the earliest reported among equals.
class FirstViolation {
 public:
  void report(Violation violation) {
    if (!first_ || place(violation) < place(*first_)) first_ = std::move(violation);
  }

  std::optional<Violation> take() { return std::move(first_); }

 private:
  static std::tuple<Rank, int, int> place(const Violation& violation) {
    return {violation.rank, violation.round, violation.move};
  }

  std::optional<Violation> first_;
};

}  // namespace lockstep::schedule
