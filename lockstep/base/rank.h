// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// A place in a group, counted from 0. Ranks of different groups are not comparable.
using Rank = int;

}  // namespace lockstep
