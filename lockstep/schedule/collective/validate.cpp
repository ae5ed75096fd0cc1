// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw UsageError(fmt::format(text, std::forward<Args>(args)...));
}

std::string algorithms_for(Op op) {
  std::string names;
  for (int value = 0; value <= static_cast<int>(Algorithm::hierarchical); ++value) {
    const Algorithm algorithm = static_cast<Algorithm>(value);
    if (!supports(algorithm, op)) continue;
    names += (names.empty() ? "" : ", ") + std::string(name_of(algorithm));
  }
  return names;
}

void require_support(Algorithm algorithm, Op op, std::string_view role) {
  if (supports(algorithm, op)) return;
  refuse("The {} \"{}\" cannot do {}; these can: {}.", role, name_of(algorithm), name_of(op),
         algorithms_for(op));
}

void validate_grid(const CollectiveSpec& spec) {
  const GridShape& grid = spec.grid;
  const bool fits = grid.rows >= 1 && grid.columns >= 1 && grid.rows <= spec.world &&
                    static_cast<std::int64_t>(grid.rows) * grid.columns == spec.world;
  if (!fits) refuse("A grid of {} x {} does not hold {} ranks.", grid.rows, grid.columns, spec.world);
}

void validate_hosts(const CollectiveSpec& spec) {
  std::int64_t ranks = 0;
  for (int on_host : spec.ranks_per_host) {
    if (on_host < 1) refuse("ranks_per_host lists a host with {} ranks; each needs at least 1.", on_host);
    ranks += on_host;
  }
  if (ranks != spec.world) refuse("ranks_per_host adds up to {} ranks in a world of {}.", ranks, spec.world);
  for (Algorithm algorithm : {spec.inner, spec.outer}) {
    if (algorithm == Algorithm::hierarchical) refuse("A hierarchy cannot be part of a hierarchy.");
  }
  require_support(spec.outer, spec.op, "outer algorithm");
}

void validate_pieces(const CollectiveSpec& spec) {
  if (spec.algorithm != Algorithm::direct || (spec.op != Op::all_reduce && spec.op != Op::reduce_scatter)) {
    refuse("Lane pieces need the algorithm direct and the operation all_reduce or reduce_scatter, not {} {}.",
           name_of(spec.algorithm), name_of(spec.op));
  }
  if (spec.pieces.size() != static_cast<std::size_t>(spec.world)) {
    refuse("Lane pieces are listed for {} ranks in a world of {}.", spec.pieces.size(), spec.world);
  }
  std::size_t number = 0;
  std::int64_t next = 0;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    for (const Subtree& piece : spec.pieces[rank]) {
      const bool is_subtree = piece.count >= 1 && std::has_single_bit(static_cast<unsigned>(piece.count)) &&
                              piece.first % piece.count == 0;
      if (!is_subtree || piece.first != next) {
        refuse("Rank {} brings {} lanes from lane {} on, which is no subtree that starts at lane {}.", rank,
               piece.count, piece.first, next);
      }
      next += piece.count;
      ++number;
    }
  }
  if (next > std::numeric_limits<int>::max() || !std::has_single_bit(static_cast<std::uint64_t>(next))) {
    refuse("Lane pieces cover {} lanes; it takes a power of two.", next);
  }
  if (number > kMaxSources) refuse("There are {} lane pieces; at most {} are allowed.", number, kMaxSources);
}

// Buffers that are a multiple of the caller's count must still have a size. Through one rank of an all_to_all
// the blocks of all may pass.
void validate_count(const CollectiveSpec& spec) {
  const auto ranks = static_cast<std::size_t>(spec.world);
  const std::size_t blocks = spec.op == Op::all_to_all ? ranks * ranks : ranks;
  if (spec.count <= std::numeric_limits<std::size_t>::max() / 16 / blocks) return;
  refuse("{} elements on each of {} ranks are more than memory can address.", spec.count, spec.world);
}

}  // namespace

void validate(const CollectiveSpec& spec) {
  if (spec.world < 1) refuse("A world has at least 1 rank, not {}.", spec.world);
  if (spec.world > kMaxWorld) refuse("A world of {} ranks exceeds the limit of {}.", spec.world, kMaxWorld);
  validate_count(spec);
  require_support(spec.algorithm, spec.op, "algorithm");
  const bool rooted = spec.op == Op::broadcast || spec.op == Op::reduce;
  if (rooted && (spec.root < 0 || spec.root >= spec.world)) {
    refuse("There is no rank {} in a world of {} to be the root of {}.", spec.root, spec.world,
           name_of(spec.op));
  }
  if (spec.algorithm == Algorithm::mesh) validate_grid(spec);
  if (spec.algorithm == Algorithm::hierarchical) validate_hosts(spec);
  if (!spec.pieces.empty()) validate_pieces(spec);
}

}  // namespace lockstep::schedule
