// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/check.h"

#include <fmt/format.h>

#include "lockstep/schedule/check/barrier.h"
#include "lockstep/schedule/check/contents.h"
#include "lockstep/schedule/check/contract.h"
#include "lockstep/schedule/check/cost.h"
#include "lockstep/schedule/check/expression.h"
#include "lockstep/schedule/check/hazards.h"
#include "lockstep/schedule/check/network.h"
#include "lockstep/schedule/check/progress.h"
#include "lockstep/schedule/check/rules.h"

namespace lockstep::schedule {

std::string Violation::to_string() const {
  std::string place = rank < 0 ? "all ranks" : fmt::format("rank {}", rank);
  if (round >= 0) place += fmt::format(", round {}", round);
  if (move >= 0) place += fmt::format(", move {}", move);
  if (range.end > range.begin) place += fmt::format(", elements [{}, {})", range.begin, range.end);
  return fmt::format("{}: {}", place, reason);
}

CheckResult check_without_formulas(const CollectiveSpec& spec, std::span<const Program> programs) {
  if (auto violation = check_rules(spec, programs)) return {.violation = violation, .cost = {}};

  Network network = gather_moves(programs);
  if (auto violation = match_messages(network)) return {.violation = violation, .cost = {}};
  if (auto violation = check_hazards(network)) return {.violation = violation, .cost = {}};

  const ProgressResult played = check_progress(network);
  if (played.violation) return {.violation = played.violation, .cost = {}};

  CheckResult result{.violation = {}, .cost = count_cost(programs, played.progress)};
  if (spec.op == Op::barrier) {
    result.violation = check_barrier(network, played.progress);
    return result;
  }
  Expressions expressions;
  const ContentsResult contents = follow_contents(spec, programs, network, played.progress, expressions);
  result.violation =
      contents.violation ? contents.violation : check_contract(spec, contents.ranks, expressions);
  return result;
}

CheckResult check(const CollectiveSpec& spec, std::span<const Program> programs) {
  CheckResult result = check_without_formulas(spec, programs);
  if (!result.violation) result.violation = compare_with_formulas(spec, result.cost);
  return result;
}

}  // namespace lockstep::schedule
