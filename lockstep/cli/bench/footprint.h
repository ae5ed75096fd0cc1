// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/cli/bench/protocol.h"

namespace lockstep::cli {

// Bytes of the buffers that all ranks together hold for a case, without what does not grow with its size.
// Pure.
std::uint64_t footprint(const Case& what, int ranks);

// `together` are held at the same time, with the same --bytes. UsageError that names the largest size that
// fits when they need more than nine tenths of the usable bytes: the rest is for the processes themselves.
void require_memory(std::span<const Case> together, int ranks, std::uint64_t usable);

}  // namespace lockstep::cli
