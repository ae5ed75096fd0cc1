// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/contents.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/check/contract.h"
#include "lockstep/schedule/check/violation.h"

namespace lockstep::schedule {

BufferContents::BufferContents(std::size_t elements) : elements_(elements) {
  segments_.push_back({});
}

std::size_t BufferContents::segment_at(std::size_t element) const {
  const auto after = std::ranges::upper_bound(segments_, element, {}, &Segment::begin);
  return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

void BufferContents::read(Range range, std::vector<Piece>& pieces) const {
  std::size_t at = range.begin;
  for (std::size_t index = segment_at(at); at < range.end; ++index) {
    const std::size_t segment_end = index + 1 < segments_.size() ? segments_[index + 1].begin : elements_;
    const std::size_t end = std::min(segment_end, range.end);
    Value value = segments_[index].value;
    value.shift = value.expression == kUnspecified ? 0 : value.shift + range.begin;
    pieces.push_back({{at - range.begin, end - range.begin}, value});
    at = end;
  }
}

void BufferContents::write(Range range, std::span<const Piece> pieces) {
  const std::size_t first = segment_at(range.begin);
  const std::size_t last = segment_at(range.end - 1);
  const std::size_t last_end = last + 1 < segments_.size() ? segments_[last + 1].begin : elements_;

  fresh_.clear();
  const auto append = [&](std::size_t begin, Value value) {
    if (fresh_.empty() || !(fresh_.back().value == value)) fresh_.push_back({begin, value});
  };
  if (segments_[first].begin < range.begin) append(segments_[first].begin, segments_[first].value);
  for (const Piece& piece : pieces) {
    Value value = piece.value;
    value.shift = value.expression == kUnspecified ? 0 : value.shift - range.begin;
    append(range.begin + piece.range.begin, value);
  }
  if (range.end < last_end) append(range.end, segments_[last].value);

  const auto at = segments_.begin() + static_cast<std::ptrdiff_t>(first);
  const std::size_t kept = std::min(fresh_.size(), last - first + 1);
  std::copy_n(fresh_.begin(), kept, at);
  if (kept < fresh_.size()) {
    segments_.insert(at + static_cast<std::ptrdiff_t>(kept),
                     fresh_.begin() + static_cast<std::ptrdiff_t>(kept), fresh_.end());
  } else {
    segments_.erase(at + static_cast<std::ptrdiff_t>(kept),
                    segments_.begin() + static_cast<std::ptrdiff_t>(last + 1));
  }
}

namespace {

class Follower {
 public:
  Follower(const Network& network, Expressions& expressions, std::vector<RankContents>& ranks)
      : network_(network), expressions_(expressions), ranks_(ranks), values_(network.moves.size()) {}

  void fire(std::uint32_t move) {
    const MoveNode& node = network_.moves[move];
    load_operands(node);
    const std::size_t first = made_.size();
    combine_operands(node);
    const std::span<const Piece> value = std::span(made_).subspan(first);
    if (node.move->into) buffer_of(node, *node.move->into).write(node.move->into->range, value);
    values_[move] = {first, made_.size()};
    if (node.move->send_to.empty()) made_.resize(first);
  }

  std::optional<Violation> first_violation() { return violations_.take(); }

 private:
  BufferContents& buffer_of(const MoveNode& node, const Slice& slice) {
    return ranks_[static_cast<std::size_t>(node.rank)][slice.buffer];
  }

  void load_operands(const MoveNode& node) {
    operands_.clear();
    loaded_.clear();
    std::size_t remote = 0;
    for (const Source& source : node.move->sources) {
      const std::size_t first = loaded_.size();
      if (source.from == kLocal) {
        buffer_of(node, source.slice).read(source.slice.range, loaded_);
        require_specified(node, source.slice, std::span(loaded_).subspan(first));
      } else {
        const Message& message = network_.messages[network_.taken_by(node)[remote++]];
        const Range value = values_[message.sender];
        for (std::size_t piece = value.begin; piece < value.end; ++piece) loaded_.push_back(made_[piece]);
      }
      operands_.push_back({first, source.merges});
    }
  }

  void require_specified(const MoveNode& node, const Slice& slice, std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
      if (piece.value.expression != kUnspecified) continue;
      const std::size_t begin = slice.range.begin;
      violations_.report(violation_at(
          node, {begin + piece.range.begin, begin + piece.range.end},
          fmt::format("reads elements of buffer {} that hold nothing specified yet", slice.buffer)));
      return;
    }
  }

  // Walks all operands together, piece by piece of constant expressions.
  void combine_operands(const MoveNode& node) {
    for (std::size_t at = 0; at < node.elements;) {
      std::size_t end = node.elements;
      stack_.clear();
      for (Operand& operand : operands_) {
        const Piece& piece = loaded_[operand.piece];
        end = std::min(end, piece.range.end);
        stack_.push_back(piece.value);
        for (int merge = 0; merge < operand.merges; ++merge) {
          const Value upper = stack_.back();
          stack_.pop_back();
          stack_.back() = expressions_.combine(stack_.back(), upper);
        }
      }
      made_.push_back({{at, end}, node.move->finish ? expressions_.finish(stack_.back()) : stack_.back()});
      for (Operand& operand : operands_) {
        if (loaded_[operand.piece].range.end == end) ++operand.piece;
      }
      at = end;
    }
  }

  struct Operand {
    std::size_t piece = 0;  // of loaded_: the one that holds the current place
    int merges = 0;
  };

  const Network& network_;
  Expressions& expressions_;
  std::vector<RankContents>& ranks_;
  std::vector<Piece> made_;    // the values of all moves that send
  std::vector<Range> values_;  // by move: of made_
  std::vector<Piece> loaded_;
  std::vector<Operand> operands_;
  std::vector<Value> stack_;
  FirstViolation violations_;
};

std::vector<RankContents> initial_contents(const CollectiveSpec& spec, std::span<const Program> programs,
                                           Expressions& expressions) {
  std::vector<RankContents> ranks;
  for (const Program& program : programs) {
    RankContents& contents = ranks.emplace_back();
    for (const std::size_t elements : program.buffer_elements) contents.emplace_back(elements);
    for (const Slice& input : inputs_of(spec, program.rank)) {
      if (input.range.empty()) continue;
      const Value value{expressions.leaf(program.rank, input.buffer), input.range.begin};
      const Piece piece{{0, input.range.size()}, value};
      contents[input.buffer].write(input.range, std::span(&piece, 1));
    }
  }
  return ranks;
}

}  // namespace

ContentsResult follow_contents(const CollectiveSpec& spec, std::span<const Program> programs,
                               const Network& network, const Progress& progress, Expressions& expressions) {
  ContentsResult result;
  if (spec.op == Op::barrier) return result;
  result.ranks = initial_contents(spec, programs, expressions);
  Follower follower(network, expressions, result.ranks);
  for (const std::uint32_t move : progress.order) follower.fire(move);
  result.violation = follower.first_violation();
  return result;
}

}  // namespace lockstep::schedule
