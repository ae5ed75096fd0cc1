// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lockstep/schedule/check/contents.h"
#include "lockstep/schedule/check/expression.h"

namespace lockstep::schedule {

// all_reduce, reduce_scatter and reduce: the elements that the contract names hold the finished reduction,
// finished exactly once. Exact algorithms and lanes: in the canonical order. Others: every contribution
// exactly once, and the same order on all ranks.
// A world of one that brings one value may leave it unfinished: it is its own sum and its own average.
std::optional<Violation> check_reduction(const CollectiveSpec& spec, std::span<const RankContents> contents,
                                         Expressions& expressions);

}  // namespace lockstep::schedule
