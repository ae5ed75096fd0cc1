// SPDX-License-Identifier: Apache-2.0
//
// The buffers of all ranks as intervals of expressions: work is proportional to the number of different
// pieces, not of elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/schedule/check/expression.h"
#include "lockstep/schedule/check/network.h"
#include "lockstep/schedule/check/progress.h"

namespace lockstep::schedule {

// A part of a value that a move makes or a slice holds; places count from the beginning of that value.
struct Piece {
  Range range;
  Value value;
};

class BufferContents {
 public:
  explicit BufferContents(std::size_t elements);

  // Appends what the range (not empty, inside) holds, with places counted from its beginning.
  void read(Range range, std::vector<Piece>& pieces) const;

  // Stores pieces that cover [0, size of range) in order.
  void write(Range range, std::span<const Piece> pieces);

 private:
  struct Segment {
    std::size_t begin = 0;  // up to the next one's
    Value value;
  };

  std::size_t segment_at(std::size_t element) const;

  std::size_t elements_;
  std::vector<Segment> segments_;
  std::vector<Segment> fresh_;
};

using RankContents = std::vector<BufferContents>;  // by buffer

struct ContentsResult {
  std::vector<RankContents> ranks;
  std::optional<Violation> violation;
};

// Starts from the inputs that the contract gives and fires all moves in order. A read of scratch that was
// never written, or of what the contract leaves unspecified, is a violation. The barrier, whose messages
// carry no meaning, has no contents.
ContentsResult follow_contents(const CollectiveSpec& spec, std::span<const Program> programs,
                               const Network& network, const Progress& progress, Expressions& expressions);

}  // namespace lockstep::schedule
