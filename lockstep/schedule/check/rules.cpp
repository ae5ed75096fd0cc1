// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/rules.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "lockstep/schedule/check/contract.h"

namespace lockstep::schedule {
namespace {

// What is wrong with a part of a program: the elements concerned and why.
struct Fault {
  Range range;
  std::string reason;
};

std::optional<Fault> slice_fault(const Program& program, const Slice& slice, const char* role) {
  if (slice.buffer >= program.buffer_elements.size()) {
    return Fault{slice.range, fmt::format("the {} is in buffer {}, but there are only {} buffers", role,
                                          slice.buffer, program.buffer_elements.size())};
  }
  if (slice.range.begin >= slice.range.end) {
    return Fault{slice.range, fmt::format("the {} in buffer {} holds no element", role, slice.buffer)};
  }
  if (slice.range.end > program.buffer_elements[slice.buffer]) {
    return Fault{slice.range, fmt::format("the {} passes the end of buffer {}, which holds {} elements", role,
                                          slice.buffer, program.buffer_elements[slice.buffer])};
  }
  return std::nullopt;
}

std::optional<Fault> peer_fault(const Program& program, Rank peer, const char* role) {
  if (peer < 0 || peer >= program.world) {
    return Fault{{}, fmt::format("it {} rank {}, which is not in a world of {}", role, peer, program.world)};
  }
  if (peer == program.rank) return Fault{{}, fmt::format("it {} its own rank", role)};
  return std::nullopt;
}

std::optional<Fault> merge_fault(const Move& move) {
  std::size_t stacked = 0;
  for (std::size_t index = 0; index < move.sources.size(); ++index) {
    ++stacked;
    const std::size_t merges = move.sources[index].merges;
    if (merges >= stacked) {
      return Fault{{},
                   fmt::format("source {} merges {} times, but only {} operands are on the stack", index,
                               merges, stacked)};
    }
    stacked -= merges;
  }
  if (stacked == 1) return std::nullopt;
  return Fault{{}, fmt::format("its merges leave {} values, not one", stacked)};
}

std::optional<Fault> source_fault(const Program& program, const Move& move) {
  if (move.sources.empty()) return Fault{{}, "it has no source"};
  if (move.sources.size() > kMaxSources) {
    return Fault{{}, fmt::format("it has {} sources, more than {}", move.sources.size(), kMaxSources)};
  }
  for (const Source& source : move.sources) {
    auto fault = source.from == kLocal ? slice_fault(program, source.slice, "source")
                                       : peer_fault(program, source.from, "takes a message from");
    if (fault) return fault;
  }
  return merge_fault(move);
}

std::optional<Fault> destination_fault(const Program& program, const Move& move) {
  if (move.into) {
    if (auto fault = slice_fault(program, *move.into, "destination")) return fault;
    for (const Source& source : move.sources) {
      const bool same = source.from != kLocal || source.slice == *move.into ||
                        source.slice.buffer != move.into->buffer ||
                        !overlap(source.slice.range, move.into->range);
      if (!same) {
        return Fault{intersection(source.slice.range, move.into->range),
                     "its destination overlaps a source without being equal to it"};
      }
    }
    return std::nullopt;
  }
  if (move.send_to.empty()) return Fault{{}, "it neither stores nor sends its value"};
  const bool forwards = move.sources.size() == 1 && move.sources[0].from == kLocal && !move.finish;
  if (forwards) return std::nullopt;
  return Fault{{}, "it sends a value that it makes, but has no destination to send it from"};
}

std::optional<Fault> size_fault(const Move& move) {
  const std::size_t elements = elements_of(move);
  for (const Source& source : move.sources) {
    if (source.from == kLocal && source.slice.range.size() != elements) {
      return Fault{source.slice.range, fmt::format("a source of {} elements goes into a value of {}",
                                                   source.slice.range.size(), elements)};
    }
  }
  return std::nullopt;
}

bool reduces(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce;
}

std::optional<Fault> move_fault(const CollectiveSpec& spec, const Program& program, const Move& move) {
  if (move.finish && !reduces(spec.op)) {
    return Fault{{}, fmt::format("it finishes a reduction, but {} makes none", name_of(spec.op))};
  }
  if (auto fault = source_fault(program, move)) return fault;
  if (auto fault = destination_fault(program, move)) return fault;
  for (const Rank peer : move.send_to) {
    if (auto fault = peer_fault(program, peer, "sends to")) return fault;
  }
  return size_fault(move);
}

std::optional<std::string> header_fault(const CollectiveSpec& spec, const Program& program, Rank rank) {
  if (program.rank != rank) return fmt::format("its program says that it is for rank {}", program.rank);
  if (program.world != spec.world) {
    return fmt::format("its program is for a world of {}, not {}", program.world, spec.world);
  }
  const std::vector<std::size_t> expected = caller_buffers(spec, rank);
  if (program.scratch_from != expected.size() || program.buffer_elements.size() < expected.size()) {
    return fmt::format("its program binds {} buffers of the caller ({} in all), not {}", program.scratch_from,
                       program.buffer_elements.size(), expected.size());
  }
  for (std::size_t buffer = 0; buffer < expected.size(); ++buffer) {
    if (program.buffer_elements[buffer] != expected[buffer]) {
      return fmt::format("buffer {} has {} elements, not {}", buffer, program.buffer_elements[buffer],
                         expected[buffer]);
    }
  }
  return std::nullopt;
}

std::optional<Violation> program_fault(const CollectiveSpec& spec, const Program& program, Rank rank) {
  if (auto reason = header_fault(spec, program, rank)) {
    return Violation{.rank = rank, .range = {}, .reason = *reason};
  }
  for (std::size_t round = 0; round < program.rounds.size(); ++round) {
    for (std::size_t move = 0; move < program.rounds[round].size(); ++move) {
      if (auto fault = move_fault(spec, program, program.rounds[round][move])) {
        return Violation{rank, static_cast<int>(round), static_cast<int>(move), fault->range, fault->reason};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_rules(const CollectiveSpec& spec, std::span<const Program> programs) {
  if (auto reason = contract_fault(spec)) return Violation{.range = {}, .reason = *reason};
  if (programs.size() != static_cast<std::size_t>(spec.world)) {
    return Violation{
        .range = {},
        .reason = fmt::format("there are {} programs for a world of {}", programs.size(), spec.world)};
  }
  for (Rank rank = 0; rank < spec.world; ++rank) {
    if (auto violation = program_fault(spec, programs[static_cast<std::size_t>(rank)], rank))
      return violation;
  }
  return std::nullopt;
}

}  // namespace lockstep::schedule
