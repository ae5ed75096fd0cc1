// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "lockstep/cli/bench/coordinator.h"

namespace lockstep::cli {

// One JSON object, without newline: system, op, algorithm, transport, ranks, bytes, dtype, registered, lanes
// (that each rank owns; only where they were asked for), time_us, time_min_us, time_max_us, algbw_gbps,
// busbw_gbps (null on one rank), correct. Bandwidths in 1e9 bytes per second.
std::string json_line(const Measurement& measurement);

std::string table_head();

// The rows of one size; those of lockstep end with how they compare with every opponent among them.
std::string table_rows(std::span<const Measurement> measurements);

// "6.10x as fast as gloo, 81% of memcpy": the speed as a multiple of each opponent's, and as a share of each
// limit. Empty for an opponent.
std::string comparison(const Measurement& ours, std::span<const Measurement> all);

}  // namespace lockstep::cli
