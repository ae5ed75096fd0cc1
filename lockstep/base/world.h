// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// The most ranks of a world: what is started, what meets and what schedules are made for.
inline constexpr int kMaxWorld = 4096;

}  // namespace lockstep
