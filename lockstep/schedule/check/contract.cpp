// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/contract.h"

#include <bit>
#include <limits>

#include <fmt/format.h>

#include "lockstep/schedule/check/reduction.h"

namespace lockstep::schedule {
namespace {

bool has_lanes(const CollectiveSpec& spec) {
  return !spec.pieces.empty();
}

Range chunk_of(const CollectiveSpec& spec, Rank rank) {
  return chunk_range(spec.count, static_cast<std::size_t>(spec.world), static_cast<std::size_t>(rank));
}

std::optional<std::string> lane_fault(const CollectiveSpec& spec) {
  if (spec.op != Op::all_reduce && spec.op != Op::reduce_scatter) {
    return fmt::format("lanes make no sense with {}", name_of(spec.op));
  }
  if (spec.pieces.size() != static_cast<std::size_t>(spec.world)) {
    return fmt::format("pieces of {} ranks are given for a world of {}", spec.pieces.size(), spec.world);
  }
  int next = 0;
  for (const std::vector<Subtree>& pieces : spec.pieces) {
    for (const Subtree& piece : pieces) {
      const bool aligned = piece.count >= 1 && std::has_single_bit(static_cast<unsigned>(piece.count)) &&
                           piece.first % piece.count == 0;
      if (piece.first != next || !aligned || piece.count > std::numeric_limits<int>::max() - next) {
        return fmt::format("the piece of lanes [{}, {}+{}) is not the next subtree after lane {}",
                           piece.first, piece.first, piece.count, next);
      }
      next = piece.end();
    }
  }
  if (next >= 1 && std::has_single_bit(static_cast<unsigned>(next))) return std::nullopt;
  return fmt::format("the pieces cover {} lanes, which is not a power of two", next);
}

// A part of a rank's buffer that must end as elements that one rank brought.
struct Copy {
  Slice slice;
  Rank origin = 0;
  std::uint64_t shift = 0;  // the origin's index minus the place in the slice's buffer
};

std::vector<Copy> copies_expected(const CollectiveSpec& spec, Rank rank) {
  if (spec.op == Op::broadcast) return {{{0, {0, spec.count}}, spec.root, 0}};
  std::vector<Copy> copies;
  for (Rank origin = 0; origin < spec.world; ++origin) {
    if (spec.op == Op::all_gather) {
      copies.push_back({{0, chunk_of(spec, origin)}, origin, 0});
    } else {
      const std::size_t theirs = static_cast<std::size_t>(origin) * spec.count;
      const std::size_t mine = static_cast<std::size_t>(rank) * spec.count;
      copies.push_back({{1, {theirs, theirs + spec.count}}, origin, mine - theirs});
    }
  }
  return copies;
}

std::string indexed(const Expressions& expressions, Value value, Range range) {
  if (value.expression == kUnspecified) return expressions.to_string(value.expression);
  const std::uint64_t begin = range.begin + value.shift;
  return fmt::format("{} at [{}, {})", expressions.to_string(value.expression), begin, begin + range.size());
}

std::optional<Violation> check_copies(const CollectiveSpec& spec, std::span<const RankContents> contents,
                                      Expressions& expressions) {
  std::vector<Piece> pieces;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    for (const Copy& copy : copies_expected(spec, rank)) {
      if (copy.slice.range.empty()) continue;
      const Value wanted{expressions.leaf(copy.origin, 0), copy.shift};
      pieces.clear();
      contents[static_cast<std::size_t>(rank)][copy.slice.buffer].read(copy.slice.range, pieces);
      for (const Piece& piece : pieces) {
        const std::size_t begin = copy.slice.range.begin;
        const Range range{begin + piece.range.begin, begin + piece.range.end};
        const Value held{piece.value.expression, piece.value.shift - begin};
        if (held == wanted) continue;
        return Violation{
            .rank = rank,
            .range = range,
            .reason = fmt::format("buffer {} ends with {} where the contract asks {}", copy.slice.buffer,
                                  indexed(expressions, held, range), indexed(expressions, wanted, range))};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> contract_fault(const CollectiveSpec& spec) {
  if (spec.world < 1) return fmt::format("a world of {} has no ranks", spec.world);
  const bool rooted = spec.op == Op::broadcast || spec.op == Op::reduce;
  if (rooted && (spec.root < 0 || spec.root >= spec.world)) {
    return fmt::format("the root {} is not in a world of {}", spec.root, spec.world);
  }
  const std::size_t most = std::numeric_limits<std::size_t>::max() / static_cast<std::size_t>(spec.world);
  if (spec.op == Op::all_to_all && spec.count > most) {
    return fmt::format("{} blocks of {} elements pass the largest buffer", spec.world, spec.count);
  }
  if (has_lanes(spec)) return lane_fault(spec);
  return std::nullopt;
}

std::vector<std::size_t> caller_buffers(const CollectiveSpec& spec, Rank rank) {
  if (spec.op == Op::barrier) return {};
  if (spec.op == Op::all_to_all) {
    return std::vector<std::size_t>(2, static_cast<std::size_t>(spec.world) * spec.count);
  }
  const std::size_t pieces = has_lanes(spec) ? spec.pieces[static_cast<std::size_t>(rank)].size() : 1;
  return std::vector<std::size_t>(std::max<std::size_t>(pieces, 1), spec.count);
}

std::vector<Slice> inputs_of(const CollectiveSpec& spec, Rank rank) {
  switch (spec.op) {
    case Op::barrier:
      return {};
    case Op::broadcast:
      if (rank != spec.root) return {};
      return {{0, {0, spec.count}}};
    case Op::all_gather:
      return {{0, chunk_of(spec, rank)}};
    case Op::all_to_all:
      return {{0, {0, static_cast<std::size_t>(spec.world) * spec.count}}};
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::reduce:
      break;
  }
  std::vector<Slice> inputs;
  const std::size_t pieces = has_lanes(spec) ? spec.pieces[static_cast<std::size_t>(rank)].size() : 1;
  for (std::uint32_t buffer = 0; buffer < pieces; ++buffer) inputs.push_back({buffer, {0, spec.count}});
  return inputs;
}

std::optional<Violation> check_contract(const CollectiveSpec& spec, std::span<const RankContents> contents,
                                        Expressions& expressions) {
  switch (spec.op) {
    case Op::barrier:
      return std::nullopt;
    case Op::broadcast:
    case Op::all_gather:
    case Op::all_to_all:
      return check_copies(spec, contents, expressions);
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::reduce:
      return check_reduction(spec, contents, expressions);
  }
  return std::nullopt;
}

}  // namespace lockstep::schedule
