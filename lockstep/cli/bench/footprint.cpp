// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/footprint.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/comm/algorithm_name.h"

namespace lockstep::cli {
namespace {

using schedule::Algorithm;
using schedule::Op;

// What blocks on their way through other ranks take, on the average of all ranks: docs/algorithms.md.
std::uint64_t blocks_under_way(Algorithm algorithm, std::uint64_t bytes, std::uint64_t ranks) {
  switch (algorithm) {
    case Algorithm::ring:
      return 2 * bytes;
    case Algorithm::mesh:
      return 3 * bytes;
    case Algorithm::halving_doubling:
      return bytes + bytes / 2 * static_cast<std::uint64_t>(std::bit_width(ranks));
    case Algorithm::tree:
      return bytes + bytes / 4 * ranks;
    default:
      return 0;
  }
}

// Through a hierarchy most blocks pass a rank of their own host and one of the other before and after they
// pass those of its two parts. Scratch comes in powers of two (comm/scratch_pool.h), so it may take twice as
// much.
std::uint64_t scratch_of_all_to_all(const Case& what, std::uint64_t ranks) {
  if (what.algorithm == "auto") return 0;
  const comm::AlgorithmName name = comm::parse_algorithm_name(what.algorithm);
  if (name.algorithm != Algorithm::hierarchical)
    return 2 * blocks_under_way(name.algorithm, what.bytes, ranks);
  return 2 * (3 * what.bytes + blocks_under_way(name.inner, what.bytes, ranks) +
              blocks_under_way(name.outer, what.bytes, ranks));
}

std::uint64_t of_lockstep(const Case& what, std::uint64_t ranks) {
  if (what.op == Op::barrier) return 0;
  if (what.op == Op::all_to_all) return 2 * what.bytes + scratch_of_all_to_all(what, ranks);
  // Its ranks take the values of all others before they add.
  if (what.algorithm == "one_shot") return what.bytes * ranks;
  return what.bytes;
}

// Those of the lanes that a rank owns beyond its first.
std::uint64_t further_lanes(const Case& what) {
  std::uint64_t buffers = 0;
  for (const int lanes : what.lanes) buffers += static_cast<std::uint64_t>(std::max(0, lanes - 1));
  return buffers * what.bytes;
}

std::uint64_t of_one_rank(const Case& what, int ranks) {
  if (what.system == "lockstep") return of_lockstep(what, static_cast<std::uint64_t>(ranks));
  if (what.system == "gloo") return what.bytes;
  if (what.system == "memcpy") return 2 * memory_limit_bytes(what.op, what.bytes, ranks);
  return 2 * what.bytes;  // mpi, with a copy of its own, and sockets
}

// Rounded down to a size that reads well and suits every dtype and number of ranks.
std::size_t rounded_down(std::uint64_t bytes, int ranks) {
  const std::uint64_t unit = (bytes >> 20) >= static_cast<std::uint64_t>(ranks) ? std::uint64_t{1} << 20 : 8;
  const std::uint64_t step = unit * static_cast<std::uint64_t>(ranks);
  return bytes / step * step;
}

}  // namespace

std::uint64_t footprint(const Case& what, int ranks) {
  return of_one_rank(what, ranks) * static_cast<std::uint64_t>(ranks) + further_lanes(what);
}

void require_memory(std::span<const Case> together, int ranks, std::uint64_t usable) {
  std::uint64_t needed = 0;
  for (const Case& what : together) needed += footprint(what, ranks);
  const std::uint64_t allowed = usable / 10 * 9;
  if (needed <= allowed) return;
  const std::uint64_t bytes = together.front().bytes;
  const double share = static_cast<double>(allowed) / static_cast<double>(needed);
  const auto fits = static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
  throw UsageError(
      fmt::format("--bytes {} needs {:.1f} GiB for the buffers of {} ranks, but {:.1f} GiB of memory are "
                  "free: the largest "
                  "that fits is --bytes {}",
                  short_size(bytes), static_cast<double>(needed) / 0x1p30, ranks,
                  static_cast<double>(usable) / 0x1p30, short_size(rounded_down(fits, ranks))));
}

}  // namespace lockstep::cli
