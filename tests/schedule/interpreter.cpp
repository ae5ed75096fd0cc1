// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/interpreter.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lockstep::schedule::testing {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b + 0xD1B54A32D192ED03U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// One element, seen in three ways: the order in which it was made, the sum of its contributions in any order,
// and how often it was finished.
struct Element {
  std::uint64_t order = 0;
  std::uint64_t sum = 0;
  int finishes = 0;
  bool specified = false;

  bool operator==(const Element&) const = default;
};

Element input(Rank rank, std::size_t buffer, std::size_t index) {
  const std::uint64_t value = mix(mix(static_cast<std::uint64_t>(rank) + 1, buffer), index);
  return {.order = value, .sum = value, .finishes = 0, .specified = true};
}

Element add(const Element& a, const Element& b) {
  // A finished operand spoils the sum: it would be divided twice, or only in part.
  const std::uint64_t spoiled = a.finishes + b.finishes > 0 ? 1 : 0;
  return {.order = mix(a.order, b.order),
          .sum = a.sum + b.sum + spoiled,
          .finishes = a.finishes + b.finishes,
          .specified = a.specified && b.specified};
}

bool runs(const Program& program, const Slice& slice) {
  return slice.buffer < program.buffer_elements.size() && slice.range.begin < slice.range.end &&
         slice.range.end <= program.buffer_elements[slice.buffer];
}

// Can this move be run at all, whatever it then does?
bool runs(const Program& program, const Move& move) {
  int values = 0;
  for (const Source& source : move.sources) {
    if (source.from == kLocal ? !runs(program, source.slice)
                              : source.from < 0 || source.from >= program.world) {
      return false;
    }
    values += 1 - source.merges;
    if (values < 1) return false;
  }
  const bool peers_exist = std::ranges::all_of(
      move.send_to, [&](Rank peer) { return peer >= 0 && peer < program.world && peer != program.rank; });
  if (move.into && !runs(program, *move.into)) return false;
  const bool can_send = move.into || move.sources[0].from == kLocal || move.send_to.empty();
  return values == 1 && peers_exist && can_send;
}

bool runs(const Program& program) {
  return std::ranges::all_of(program.rounds, [&](const Round& round) {
    return std::ranges::all_of(
        round, [&](const Move& move) { return !move.sources.empty() && runs(program, move); });
  });
}

struct Message {
  Rank sender = 0;
  Slice slice;
  bool offered = false;
};

// The messages from one rank to another.
struct Channel {
  std::vector<Message> messages;
  std::size_t taken = 0;

  // May the receiver take `count` messages from number `first` on now?
  bool ready(std::size_t first, std::size_t count) const {
    if (first != taken || first + count > messages.size()) return false;
    // In turn: a message that is offered early stays behind those before it.
    return std::all_of(messages.begin() + static_cast<std::ptrdiff_t>(first),
                       messages.begin() + static_cast<std::ptrdiff_t>(first + count),
                       [](const Message& message) { return message.offered; });
  }
};

struct MoveState {
  bool fired = false;
  std::map<Rank, std::pair<std::size_t, std::size_t>> takes;  // by peer: number of the first, how many
  std::vector<std::pair<Rank, std::size_t>> sends;            // peer, number
};

class Run {
 public:
  Run(const CollectiveSpec& spec, std::span<const Program> programs, std::uint64_t seed)
      : spec_(spec), programs_(programs), random_(seed), round_(programs.size(), 0) {
    for (const Program& program : programs) {
      number_messages(program);
      bind_buffers(program);
    }
  }

  // Ranks of which `may_enter` is false never start.
  template <typename MayEnter>
  void play(MayEnter may_enter) {
    for (;;) {
      std::vector<std::pair<std::size_t, std::size_t>> ready;
      for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
        if (!may_enter(static_cast<Rank>(rank))) continue;
        while (round_[rank] < programs_[rank].rounds.size() && round_ended(rank)) ++round_[rank];
        if (ended(rank)) continue;
        for (std::size_t move = 0; move < states_[rank][round_[rank]].size(); ++move) {
          if (can_fire(rank, move)) ready.emplace_back(rank, move);
        }
      }
      if (ready.empty() || sizes_differ_) return;
      const auto [rank, move] = ready[random_() % ready.size()];
      fire(rank, move);
    }
  }

  bool ended(std::size_t rank) const { return round_[rank] == programs_[rank].rounds.size(); }
  void buffer_all_sends() { buffered_ = true; }
  const Element& element(Rank rank, std::size_t buffer, std::size_t index) const {
    return memory_[static_cast<std::size_t>(rank)][buffer][index];
  }

 private:
  void number_messages(const Program& program) {
    std::map<Rank, std::size_t> taken;
    auto& rounds = states_.emplace_back();
    for (const Round& round : program.rounds) {
      auto& moves = rounds.emplace_back();
      for (const Move& move : round) {
        MoveState& state = moves.emplace_back();
        for (const Source& source : move.sources) {
          if (source.from == kLocal) continue;
          const auto at = state.takes.try_emplace(source.from, taken[source.from], 0).first;
          ++at->second.second;
          ++taken[source.from];
        }
        for (const Rank to : move.send_to) {
          std::vector<Message>& messages = channels_[{program.rank, to}].messages;
          state.sends.emplace_back(to, messages.size());
          messages.push_back({program.rank, move.into ? *move.into : move.sources[0].slice, false});
        }
      }
    }
  }

  bool is_input(Rank rank, std::size_t buffer, std::size_t index) const {
    const auto me = static_cast<std::size_t>(rank);
    if (buffer >= programs_[me].scratch_from) return false;
    if (spec_.op == Op::broadcast) return rank == spec_.root;
    if (spec_.op == Op::all_to_all) return buffer == 0;
    if (spec_.op == Op::all_gather) {
      const Range chunk = chunk_range(spec_.count, programs_.size(), me);
      return chunk.begin <= index && index < chunk.end;
    }
    return spec_.pieces.empty() || buffer < spec_.pieces[me].size();
  }

  void bind_buffers(const Program& program) {
    auto& buffers = memory_.emplace_back();
    for (std::size_t buffer = 0; buffer < program.buffer_elements.size(); ++buffer) {
      auto& elements = buffers.emplace_back();
      for (std::size_t index = 0; index < program.buffer_elements[buffer]; ++index) {
        elements.push_back(
            is_input(program.rank, buffer, index)
                ? input(program.rank, buffer, index)
                : Element{.order = random_(), .sum = random_(), .finishes = 0, .specified = false});
      }
    }
  }

  bool can_fire(std::size_t rank, std::size_t move) const {
    const MoveState& state = states_[rank][round_[rank]][move];
    if (state.fired) return false;
    return std::ranges::all_of(state.takes, [&](const auto& take) {
      const auto channel = channels_.find({take.first, static_cast<Rank>(rank)});
      return channel != channels_.end() && channel->second.ready(take.second.first, take.second.second);
    });
  }

  void fire(std::size_t rank, std::size_t index) {
    const Move& move = programs_[rank].rounds[round_[rank]][index];
    MoveState& state = states_[rank][round_[rank]][index];
    std::vector<std::vector<Element>> stack;
    for (const Source& source : move.sources) {
      stack.push_back(source.from == kLocal ? load(rank, source.slice)
                                            : take(channels_[{source.from, static_cast<Rank>(rank)}]));
      for (int merge = 0; merge < source.merges; ++merge) {
        const std::vector<Element> upper = std::move(stack.back());
        stack.pop_back();
        if (upper.size() != stack.back().size()) return stop();
        std::ranges::transform(stack.back(), upper, stack.back().begin(), add);
      }
    }
    if (move.finish) {
      for (Element& element : stack.back()) {
        element.order = mix(element.order, 1);
        ++element.finishes;
      }
    }
    if (move.into) {
      if (move.into->range.size() != stack.back().size()) return stop();
      std::ranges::copy(stack.back(), memory_[rank][move.into->buffer].begin() +
                                          static_cast<std::ptrdiff_t>(move.into->range.begin));
    }
    state.fired = true;
    for (const auto& [to, number] : state.sends) {
      channels_[{static_cast<Rank>(rank), to}].messages[number].offered = true;
    }
  }

  void stop() { sizes_differ_ = true; }

  std::vector<Element> take(Channel& channel) {
    const Message& message = channel.messages[channel.taken++];
    return load(static_cast<std::size_t>(message.sender), message.slice);
  }

  std::vector<Element> load(std::size_t rank, const Slice& slice) const {
    const std::vector<Element>& buffer = memory_[rank][slice.buffer];
    return {buffer.begin() + static_cast<std::ptrdiff_t>(slice.range.begin),
            buffer.begin() + static_cast<std::ptrdiff_t>(slice.range.end)};
  }

  bool round_ended(std::size_t rank) const {
    return std::ranges::all_of(states_[rank][round_[rank]], [&](const MoveState& state) {
      return state.fired && (buffered_ || std::ranges::all_of(state.sends, [&](const auto& sent) {
                               return channels_.at({static_cast<Rank>(rank), sent.first}).taken > sent.second;
                             }));
    });
  }

  const CollectiveSpec& spec_;
  std::span<const Program> programs_;
  std::mt19937_64 random_;
  std::vector<std::size_t> round_;                           // by rank
  std::vector<std::vector<std::vector<MoveState>>> states_;  // by rank, round, move
  std::vector<std::vector<std::vector<Element>>> memory_;    // by rank, buffer, index
  std::map<std::pair<Rank, Rank>, Channel> channels_;
  bool buffered_ = false;
  bool sizes_differ_ = false;
};

// The canonical tree over lanes [first, first + count), by pieces; without lanes every rank is one.
Element canonical(const CollectiveSpec& spec, int first, int count, std::size_t index) {
  for (Rank rank = 0; rank < spec.world; ++rank) {
    if (spec.pieces.empty()) {
      if (rank == first && count == 1) return input(rank, 0, index);
      continue;
    }
    const std::vector<Subtree>& pieces = spec.pieces[static_cast<std::size_t>(rank)];
    const auto at = std::ranges::find(pieces, Subtree{first, count});
    if (at != pieces.end()) return input(rank, static_cast<std::size_t>(at - pieces.begin()), index);
  }
  int left = 1;
  while (left < count - left) left *= 2;
  return add(canonical(spec, first, left, index), canonical(spec, first + left, count - left, index));
}

int leaves_of(const CollectiveSpec& spec) {
  if (spec.pieces.empty()) return spec.world;
  int leaves = 0;
  for (const auto& pieces : spec.pieces) {
    for (const Subtree& piece : pieces) leaves += piece.count;
  }
  return leaves;
}

bool is_reduced(const CollectiveSpec& spec, const Element& held, std::size_t index) {
  const Element wanted = canonical(spec, 0, leaves_of(spec), index);
  const bool alone = spec.world == 1 && spec.pieces.empty();
  const bool finished = held.finishes == 1 || (alone && held.finishes == 0);
  if (!held.specified || !finished || held.sum != wanted.sum) return false;
  if (spec.pieces.empty() && !is_exact(spec)) return true;
  return held.order == (held.finishes == 1 ? mix(wanted.order, 1) : wanted.order);
}

std::optional<std::string> wrong_at(Rank rank, std::size_t index) {
  return fmt::format("rank {} ends with a wrong element {}", rank, index);
}

std::optional<std::string> judge_reduction(const CollectiveSpec& spec, const Run& run) {
  for (Rank rank = 0; rank < spec.world; ++rank) {
    Range range{0, spec.count};
    if (spec.op == Op::reduce && rank != spec.root) range = {};
    if (spec.op == Op::reduce_scatter) {
      range = chunk_range(spec.count, static_cast<std::size_t>(spec.world), static_cast<std::size_t>(rank));
    }
    for (std::size_t index = range.begin; index < range.end; ++index) {
      if (!is_reduced(spec, run.element(rank, 0, index), index)) return wrong_at(rank, index);
      const bool same = spec.op != Op::all_reduce || run.element(rank, 0, index) == run.element(0, 0, index);
      if (!same) return wrong_at(rank, index);
    }
  }
  return std::nullopt;
}

Element wanted_copy(const CollectiveSpec& spec, Rank rank, std::size_t index) {
  if (spec.op == Op::broadcast) return input(spec.root, 0, index);
  if (spec.op == Op::all_to_all) {
    const std::size_t block = static_cast<std::size_t>(rank) * spec.count;
    return input(static_cast<Rank>(index / spec.count), 0, block + index % spec.count);
  }
  Rank owner = 0;
  while (chunk_range(spec.count, static_cast<std::size_t>(spec.world), static_cast<std::size_t>(owner)).end <=
         index) {
    ++owner;
  }
  return input(owner, 0, index);
}

std::optional<std::string> judge_copies(const CollectiveSpec& spec, const Run& run) {
  const bool to_all = spec.op == Op::all_to_all;
  const std::size_t elements = to_all ? static_cast<std::size_t>(spec.world) * spec.count : spec.count;
  for (Rank rank = 0; rank < spec.world; ++rank) {
    for (std::size_t index = 0; index < elements; ++index) {
      if (!(run.element(rank, to_all ? 1 : 0, index) == wanted_copy(spec, rank, index)))
        return wrong_at(rank, index);
    }
  }
  return std::nullopt;
}

// If one rank stays away, no other may end, even when its sends are buffered without limit.
std::optional<std::string> judge_barrier(const CollectiveSpec& spec, std::span<const Program> programs,
                                         std::uint64_t seed) {
  for (Rank away = 0; away < spec.world; ++away) {
    Run run(spec, programs, seed);
    run.buffer_all_sends();
    run.play([&](Rank rank) { return rank != away; });
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      if (static_cast<Rank>(rank) != away && run.ended(rank)) {
        return fmt::format("rank {} leaves the barrier without rank {}", rank, away);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> run_once(const CollectiveSpec& spec, std::span<const Program> programs,
                                    std::uint64_t seed) {
  for (const Program& program : programs) {
    if (!runs(program)) return fmt::format("the program of rank {} cannot be run", program.rank);
  }
  Run run(spec, programs, seed);
  run.play([](Rank) { return true; });
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    if (!run.ended(rank)) return fmt::format("rank {} never ends", rank);
  }
  switch (spec.op) {
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::reduce:
      return judge_reduction(spec, run);
    case Op::all_gather:
    case Op::broadcast:
    case Op::all_to_all:
      return judge_copies(spec, run);
    case Op::barrier:
      return judge_barrier(spec, programs, seed);
  }
  return "an operation without a judge";
}

}  // namespace lockstep::schedule::testing
