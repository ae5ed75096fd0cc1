// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/task.h"

#include <algorithm>

namespace lockstep::schedule {

Task task_of(const CollectiveSpec& spec, Rank rank) {
  const bool rooted = spec.op == Op::broadcast || spec.op == Op::reduce;
  return {.op = spec.op,
          .rank = rank,
          .root = rooted ? spec.root : 0,
          .count = spec.count,
          .chunks = even_chunks(spec.count, spec.world),
          .segment_elements = spec.segment_elements,
          .grid = spec.grid};
}

std::vector<Range> even_chunks(std::size_t count, int world) {
  std::vector<Range> chunks(world);
  for (int index = 0; index < world; ++index) chunks[index] = chunk_range(count, world, index);
  return chunks;
}

std::vector<Range> segments_of(Range range, std::size_t segment_elements) {
  const std::size_t step = segment_elements == 0 ? range.size() : segment_elements;
  std::vector<Range> segments;
  for (std::size_t begin = range.begin; begin < range.end;) {
    const std::size_t end = begin + std::min(step, range.end - begin);
    segments.push_back({begin, end});
    begin = end;
  }
  return segments;
}

Program empty_program(const Task& task) {
  Program program{.rank = task.rank, .world = task.world(), .buffer_elements = {}, .rounds = {}};
  if (task.op != Op::barrier) program.buffer_elements = {task.count};
  program.scratch_from = static_cast<std::uint32_t>(program.buffer_elements.size());
  return program;
}

}  // namespace lockstep::schedule
