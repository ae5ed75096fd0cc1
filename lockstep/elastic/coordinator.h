// SPDX-License-Identifier: Apache-2.0
//
// Who trains together, and which steps count: a state machine without clock, network or disk of its own. Whoever
// runs it hands in what has happened and the time (of a clock that only goes forward), and does what it gives back,
// in order.
//
// A generation begins when enough members want a place (everybody that the run was started with, the first
// time; later as soon as there are enough), and ends with the loss or departure of one of its members, or after
// a decision that says so because members have come. A step is decided when all members of the generation have
// voted for it. A number is on the disk before it is given to a generation, so that a coordinator that was started
// again never uses it twice; what was decided it learns from the members, who know.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

using Time = std::chrono::nanoseconds;  // since any moment

struct CoordinatorOptions {
  int expected = 1;      // members that the first generation is waited for
  int min_members = 1;   // fewer do not train
  int max_members = 1;   // more are kept as spares
  int multiple = 1;      // a generation has a multiple of so many: those of one replica of the model
  Time beat_timeout = std::chrono::seconds(10);    // a member that does not beat for so long is lost
  Time stall_timeout = std::chrono::seconds(60);   // one that beats, but neither trains nor waits for others
  Time join_timeout = std::chrono::seconds(60);    // so long a run with too few members waits for more
  Generation last_generation = 0;                  // that the log knows of
  std::int64_t decided = kNoStep;                  // the same
};

// What is to be done, in this order.
struct Send {
  MemberId to = 0;
  FromCoordinator message;
};
// Put on the disk before what follows is done.
struct Record {
  Generation generation = 0;
  std::vector<MemberId> members;
  std::int64_t decided = kNoStep;
  bool is_rollback = false;  // the generation goes on from an older step than was decided
};
// The member is lost, frozen or refused: see that its process ends.
struct Fence {
  MemberId member = 0;
  std::string reason;
};
// The run is over: everything was done, or there were too few members for too long.
struct End {
  bool is_finished = false;
  std::string reason;
};
using Output = std::variant<Send, Record, Fence, End>;

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options);

  std::vector<Output> hear(const FromMember& message, Time now);
  // Its connection was closed or its process has ended, by whichever is noticed first.
  std::vector<Output> lose(MemberId member, const std::string& reason, Time now);
  // Looks at what time alone brings; call it at least whenever next_deadline() has passed.
  std::vector<Output> tick(Time now);
  std::optional<Time> next_deadline() const;

  Generation generation() const;          // the present one, or the last
  bool is_running() const;                // a generation is under way
  std::int64_t decided() const;
  const std::vector<MemberId>& members() const;  // of the generation, by rank
};

}  // namespace lockstep::elastic
