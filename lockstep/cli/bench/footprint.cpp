// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/footprint.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {
namespace {

using schedule::Op;

std::uint64_t of_lockstep(const Case& what, std::uint64_t ranks) {
  if (what.op == Op::barrier) return 0;
  if (what.op == Op::all_to_all) return 2 * what.bytes;
  // Its ranks take the values of all others before they add.
  if (what.algorithm == "one_shot") return what.bytes * ranks;
  return what.bytes;
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
  return of_one_rank(what, ranks) * static_cast<std::uint64_t>(ranks);
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
