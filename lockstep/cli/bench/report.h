// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "lockstep/cli/bench/coordinator.h"

namespace lockstep::cli {

// One JSON object, without newline: system, op, algorithm, transport, ranks, bytes, dtype, registered,
// time_us, time_min_us, time_max_us, algbw_gbps, busbw_gbps, correct. Bandwidths in 1e9 bytes per second.
std::string json_line(const Measurement& measurement);

void print_table_head(std::ostream& out);

// The rows of one size; those of lockstep end with how they compare with every opponent among them.
void print_table_rows(std::span<const Measurement> measurements, std::ostream& out);

// "6.1x gloo, 4.0x mpi, 81% of memcpy": how much faster than each opponent, and the share of the memory limit
// that is reached. Empty for an opponent.
std::string comparison(const Measurement& ours, std::span<const Measurement> all);

}  // namespace lockstep::cli
