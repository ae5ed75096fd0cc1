// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/reduction.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace lockstep::schedule {
namespace {

// One operand of the whole reduction: a rank's buffer, which stands for a run of leaves of the canonical
// tree.
struct Contribution {
  Rank rank = 0;
  std::uint32_t buffer = 0;
  int leaves = 1;
};

std::vector<Contribution> contributions(const CollectiveSpec& spec) {
  std::vector<Contribution> all;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    if (spec.pieces.empty()) {
      all.push_back({.rank = rank});
      continue;
    }
    std::uint32_t buffer = 0;
    for (const Subtree& piece : spec.pieces[static_cast<std::size_t>(rank)]) {
      all.push_back({.rank = rank, .buffer = buffer++, .leaves = piece.count});
    }
  }
  return all;
}

// The canonical tree over the leaves of these contributions, from its definition: it splits at the largest
// power of two below the number of leaves. A contribution is never split: it is an aligned subtree.
Value canonical(std::span<const Contribution> operands, int leaves, Expressions& expressions) {
  if (operands.size() == 1) return {expressions.leaf(operands[0].rank, operands[0].buffer), 0};
  int left_leaves = 1;
  while (left_leaves * 2 < leaves) left_leaves *= 2;
  std::size_t cut = 0;
  for (int covered = 0; covered < left_leaves; ++cut) covered += operands[cut].leaves;
  const Value left = canonical(operands.first(cut), left_leaves, expressions);
  return expressions.combine(left, canonical(operands.subspan(cut), leaves - left_leaves, expressions));
}

Range result_range(const CollectiveSpec& spec, Rank rank) {
  const Range all{0, spec.count};
  if (spec.op == Op::all_reduce) return all;
  if (spec.op == Op::reduce) return rank == spec.root ? all : Range{};
  return chunk_range(spec.count, static_cast<std::size_t>(spec.world), static_cast<std::size_t>(rank));
}

class ReductionCheck {
 public:
  ReductionCheck(const CollectiveSpec& spec, Expressions& expressions)
      : spec_(spec), expressions_(expressions), contributions_(contributions(spec)) {
    if (!spec.pieces.empty() || is_exact(spec)) {
      int leaves = 0;
      for (const Contribution& contribution : contributions_) leaves += contribution.leaves;
      canonical_ = canonical(contributions_, leaves, expressions_).expression;
    }
  }

  // Why this is not the reduction of the element it stands for, if so.
  std::optional<std::string> fault(Value value) {
    const auto [at, unknown] = faults_.try_emplace(value.expression);
    if (unknown) at->second = expression_fault(value.expression);
    if (at->second || value.shift == 0) return at->second;
    return fmt::format("ends with {} of elements {:+} away", expressions_.to_string(value.expression),
                       static_cast<std::int64_t>(value.shift));
  }

 private:
  std::optional<std::string> expression_fault(ExpressionId id) const {
    const Expression& expression = expressions_[id];
    const bool finished = expression.kind == ExpressionKind::finished;
    const bool alone = spec_.world == 1 && spec_.pieces.empty();
    if (id == kUnspecified) return "ends with nothing specified";
    if (!finished && !alone)
      return fmt::format("ends with {}, which is not finished", expressions_.to_string(id));
    const ExpressionId sum = finished ? expression.left : id;
    if (canonical_) {
      if (sum == *canonical_) return std::nullopt;
      return fmt::format("ends with {}, not in the canonical order {}", expressions_.to_string(sum),
                         expressions_.to_string(*canonical_));
    }
    return once_fault(sum);
  }

  std::optional<std::string> once_fault(ExpressionId sum) const {
    std::vector<int> times(static_cast<std::size_t>(spec_.world), 0);
    if (expressions_.leaf_count(sum) > contributions_.size()) {
      return fmt::format("ends with {}, which has more than {} contributions", expressions_.to_string(sum),
                         contributions_.size());
    }
    if (auto fault = count_leaves(sum, times)) return fault;
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      if (times[rank] == 1) continue;
      return fmt::format("ends with {}, in which rank {} contributes {} times", expressions_.to_string(sum),
                         rank, times[rank]);
    }
    return std::nullopt;
  }

  std::optional<std::string> count_leaves(ExpressionId id, std::vector<int>& times) const {
    const Expression& expression = expressions_[id];
    switch (expression.kind) {
      case ExpressionKind::unspecified:
        return "ends with nothing specified";
      case ExpressionKind::finished:
        return fmt::format("ends with a value that was finished before all was added: {}",
                           expressions_.to_string(id));
      case ExpressionKind::leaf:
        ++times[expression.left];
        return std::nullopt;
      case ExpressionKind::combination:
        break;
    }
    if (expression.shift != 0) {
      return fmt::format("ends with a sum of different elements: {}", expressions_.to_string(id));
    }
    if (auto fault = count_leaves(expression.left, times)) return fault;
    return count_leaves(expression.right, times);
  }

  const CollectiveSpec& spec_;
  Expressions& expressions_;
  std::vector<Contribution> contributions_;
  std::optional<ExpressionId> canonical_;
  std::unordered_map<ExpressionId, std::optional<std::string>> faults_;
};

// The first place at which two lists of pieces over the same range differ, if any. Nothing is unspecified.
std::optional<Range> first_difference(std::span<const Piece> a, std::span<const Piece> b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Range both = intersection(a[i].range, b[j].range);
    if (!(a[i].value == b[j].value)) return both;
    if (a[i].range.end == both.end) ++i;
    if (b[j].range.end == both.end) ++j;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_reduction(const CollectiveSpec& spec, std::span<const RankContents> contents,
                                         Expressions& expressions) {
  ReductionCheck reduction(spec, expressions);
  std::vector<Piece> first;
  std::vector<Piece> held;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    const Range range = result_range(spec, rank);
    if (range.empty()) continue;
    held.clear();
    contents[static_cast<std::size_t>(rank)][0].read(range, held);
    for (const Piece& piece : held) {
      const Value value{piece.value.expression, piece.value.shift - range.begin};
      if (auto reason = reduction.fault(value)) {
        return Violation{.rank = rank,
                         .range = {range.begin + piece.range.begin, range.begin + piece.range.end},
                         .reason = *reason};
      }
    }
    if (spec.op != Op::all_reduce) continue;
    if (rank == 0) first = held;
    if (auto difference = first_difference(first, held)) {
      return Violation{
          .rank = rank, .range = *difference, .reason = "ends with another order of addition than rank 0"};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::schedule
