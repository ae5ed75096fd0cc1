// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/hazards.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "lockstep/schedule/check/violation.h"

namespace lockstep::schedule {
namespace {

struct Access {
  Slice slice;
  const MoveNode* by = nullptr;
  bool writes = false;
};

const Slice& sent_slice(const Move& move) {
  return move.into ? *move.into : move.sources.front().slice;
}

// May `back` write `slice`, which `out` also uses? Only if `out` sends exactly this slice, `back` stores
// exactly there, and each peer that `out` sends to makes a value that `back` takes from that very message:
// then all messages of `out` have been taken before `back` can fire.
bool is_exchange(const Network& network, const MoveNode& out, const MoveNode& back, const Slice& slice) {
  if (out.move->send_to.empty() || !(sent_slice(*out.move) == slice) || !(back.move->into == slice))
    return false;
  return std::ranges::all_of(network.sent_by(out), [&](const Message& message) {
    return std::ranges::any_of(network.taken_by(back), [&](std::uint32_t returned) {
      return network.messages[returned].sender == message.taker;
    });
  });
}

bool allowed(const Network& network, const Access& a, const Access& b) {
  if (a.by == b.by || (!a.writes && !b.writes)) return true;
  return (b.writes && is_exchange(network, *a.by, *b.by, a.slice)) ||
         (a.writes && is_exchange(network, *b.by, *a.by, b.slice));
}

Violation describe(const Access& a, const Access& b) {
  const bool a_is_later = a.by->index > b.by->index;
  const Access& later = a_is_later ? a : b;
  const Access& earlier = a_is_later ? b : a;
  return violation_at(*later.by, intersection(a.slice.range, b.slice.range),
                      fmt::format("{} elements of buffer {} that move {} of the same round {}",
                                  later.writes ? "writes" : "reads", a.slice.buffer, earlier.by->index,
                                  earlier.writes ? "writes" : "reads"));
}

class RoundSweep {
 public:
  RoundSweep(const Network& network, FirstViolation& violations)
      : network_(network), violations_(violations) {}

  void sweep(std::span<const MoveNode> moves) {
    collect(moves);
    std::ranges::sort(accesses_, {}, [](const Access& access) {
      return std::tuple(access.slice.buffer, access.slice.range.begin, access.by->index, access.writes);
    });
    reads_.clear();
    writes_.clear();
    for (const Access& access : accesses_) {
      compare(access, writes_);
      if (access.writes) compare(access, reads_);
      (access.writes ? writes_ : reads_).push_back(&access);
    }
  }

 private:
  void collect(std::span<const MoveNode> moves) {
    accesses_.clear();
    for (const MoveNode& node : moves) {
      for (const Source& source : node.move->sources) {
        if (source.from == kLocal) accesses_.push_back({source.slice, &node, false});
      }
      if (node.move->into) accesses_.push_back({*node.move->into, &node, true});
    }
  }

  // Accesses come in the order of their beginnings, so those that ended before this one are done with.
  void compare(const Access& access, std::vector<const Access*>& open) {
    std::erase_if(open, [&](const Access* other) {
      return other->slice.buffer != access.slice.buffer || other->slice.range.end <= access.slice.range.begin;
    });
    for (const Access* other : open) {
      if (!allowed(network_, *other, access)) violations_.report(describe(*other, access));
    }
  }

  const Network& network_;
  FirstViolation& violations_;
  std::vector<Access> accesses_;
  std::vector<const Access*> reads_;
  std::vector<const Access*> writes_;
};

}  // namespace

std::optional<Violation> check_hazards(const Network& network) {
  FirstViolation violations;
  RoundSweep sweep(network, violations);
  for (const std::vector<Range>& rounds : network.rounds) {
    for (const Range round : rounds) {
      if (round.size() > 1) sweep.sweep(std::span(network.moves).subspan(round.begin, round.size()));
    }
  }
  return violations.take();
}

}  // namespace lockstep::schedule
