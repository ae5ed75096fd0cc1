// SPDX-License-Identifier: Apache-2.0
//
// The contract of collective.h as data: what ranks bring, and what they must end with.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schedule/check/contents.h"
#include "lockstep/schedule/check/expression.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule {

// Why the spec describes no collective at all, if so.
std::optional<std::string> contract_fault(const CollectiveSpec& spec);

// The sizes of the buffers that the caller of this rank binds.
std::vector<std::size_t> caller_buffers(const CollectiveSpec& spec, Rank rank);

// The parts of them that hold values at the start.
std::vector<Slice> inputs_of(const CollectiveSpec& spec, Rank rank);

// Every rank holds what the contract asks; `contents` are those after all moves.
std::optional<Violation> check_contract(const CollectiveSpec& spec, std::span<const RankContents> contents,
                                        Expressions& expressions);

}  // namespace lockstep::schedule
