// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/check/network.h"
#include "lockstep/schedule/check/violation.h"

namespace lockstep::schedule {
namespace {

// One end of a message: the move it belongs to, and where its number is kept.
struct End {
  std::uint32_t move = kNone;
  std::uint32_t slot = kNone;  // of Network::messages for a sender, of Network::taken for a taker
};

// The ends of the messages of each ordered pair of ranks, in the order of the program.
class EndsByPair {
 public:
  explicit EndsByPair(int world) : world_(static_cast<std::size_t>(world)), first_(world_ * world_ + 1, 0) {}

  std::size_t pair(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * world_ + static_cast<std::size_t>(to);
  }

  void announce(std::size_t pair) { ++first_[pair + 1]; }

  void begin_filling() {
    for (std::size_t pair = 1; pair < first_.size(); ++pair) first_[pair] += first_[pair - 1];
    ends_.resize(first_.back());
    filled_ = first_;
  }

  void add(std::size_t pair, End end) { ends_[filled_[pair]++] = end; }

  std::span<const End> of(std::size_t pair) const {
    return std::span(ends_).subspan(first_[pair], first_[pair + 1] - first_[pair]);
  }

  std::size_t pairs() const { return first_.size() - 1; }

 private:
  std::size_t world_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> filled_;
  std::vector<End> ends_;
};

template <typename Visit>
void for_each_send(const Network& network, Visit visit) {
  for (std::uint32_t move = 0; move < network.moves.size(); ++move) {
    const MoveNode& node = network.moves[move];
    auto slot = static_cast<std::uint32_t>(node.sent.begin);
    for (const Rank to : node.move->send_to) visit(node.rank, to, End{move, slot++});
  }
}

template <typename Visit>
void for_each_take(const Network& network, Visit visit) {
  for (std::uint32_t move = 0; move < network.moves.size(); ++move) {
    const MoveNode& node = network.moves[move];
    auto slot = static_cast<std::uint32_t>(node.taken.begin);
    for (const Source& source : node.move->sources) {
      if (source.from != kLocal) visit(source.from, node.rank, End{move, slot++});
    }
  }
}

template <typename ForEach>
EndsByPair ends_by_pair(const Network& network, ForEach for_each) {
  EndsByPair ends(network.world);
  for_each(network, [&](Rank from, Rank to, End) { ends.announce(ends.pair(from, to)); });
  ends.begin_filling();
  for_each(network, [&](Rank from, Rank to, End end) { ends.add(ends.pair(from, to), end); });
  return ends;
}

class Matcher {
 public:
  explicit Matcher(Network& network) : network_(network) {}

  void match_pair(std::span<const End> sends, std::span<const End> takes) {
    std::uint32_t previous = kNone;
    for (std::size_t k = 0; k < std::min(sends.size(), takes.size()); ++k) {
      join(sends[k], takes[k], std::exchange(previous, sends[k].slot));
    }
    if (sends.size() > takes.size()) report_unmatched_send(sends[takes.size()], takes.size());
    if (takes.size() > sends.size()) report_unmatched_take(takes[sends.size()], sends.size());
  }

  std::optional<Violation> first_violation() { return violations_.take(); }

 private:
  void join(End send, End take, std::uint32_t previous) {
    network_.taken[take.slot] = send.slot;
    network_.messages[send.slot] = {
        .sender = send.move, .taker = take.move, .previous = previous, .next = kNone};
    if (previous != kNone) network_.messages[previous].next = send.slot;

    const MoveNode& sender = network_.moves[send.move];
    const MoveNode& taker = network_.moves[take.move];
    if (sender.elements != taker.elements) {
      report(taker,
             fmt::format("takes a message of {} elements from rank {} (round {}, move {}) into a value of {}",
                         sender.elements, sender.rank, sender.round, sender.index, taker.elements));
    }
  }

  void report_unmatched_send(End send, std::size_t place) {
    const MoveNode& sender = network_.moves[send.move];
    const Rank to = sender.move->send_to[send.slot - sender.sent.begin];
    report(sender, fmt::format("sends message {} to rank {}, which takes only {} from it", place, to, place));
  }

  void report_unmatched_take(End take, std::size_t place) {
    const MoveNode& taker = network_.moves[take.move];
    std::size_t remaining = take.slot - taker.taken.begin;
    for (const Source& source : taker.move->sources) {
      if (source.from == kLocal || remaining-- > 0) continue;
      report(taker, fmt::format("takes message {} from rank {}, which sends only {} to it", place,
                                source.from, place));
      return;
    }
  }

  void report(const MoveNode& node, std::string reason) {
    const Range range = node.move->into ? node.move->into->range : Range{0, node.elements};
    violations_.report(violation_at(node, range, std::move(reason)));
  }

  Network& network_;
  FirstViolation violations_;
};

}  // namespace

Violation violation_at(const MoveNode& node, Range range, std::string reason) {
  return {node.rank, node.round, node.index, range, std::move(reason)};
}

Network gather_moves(std::span<const Program> programs) {
  Network network;
  network.world = static_cast<int>(programs.size());
  std::size_t sent = 0;
  std::size_t taken = 0;
  for (const Program& program : programs) {
    std::vector<Range>& rounds = network.rounds.emplace_back();
    for (const Round& round : program.rounds) {
      const std::size_t first = network.moves.size();
      for (const Move& move : round) {
        std::size_t remote = 0;
        for (const Source& source : move.sources) remote += source.from != kLocal;
        network.moves.push_back({.move = &move,
                                 .rank = program.rank,
                                 .round = static_cast<int>(rounds.size()),
                                 .index = static_cast<int>(network.moves.size() - first),
                                 .elements = elements_of(move),
                                 .taken = {taken, taken + remote},
                                 .sent = {sent, sent + move.send_to.size()}});
        sent += move.send_to.size();
        taken += remote;
      }
      rounds.push_back({first, network.moves.size()});
    }
  }
  network.messages.resize(sent);
  network.taken.resize(taken, kNone);
  return network;
}

std::optional<Violation> match_messages(Network& network) {
  const auto sends = ends_by_pair(network, [](const Network& n, auto visit) { for_each_send(n, visit); });
  const auto takes = ends_by_pair(network, [](const Network& n, auto visit) { for_each_take(n, visit); });
  Matcher matcher(network);
  for (std::size_t pair = 0; pair < sends.pairs(); ++pair) matcher.match_pair(sends.of(pair), takes.of(pair));
  return matcher.first_violation();
}

}  // namespace lockstep::schedule
