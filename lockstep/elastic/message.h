// SPDX-License-Identifier: Apache-2.0
//
// What the workers of a run (its members) and its coordinator tell each other. A generation is a set of
// members that train together; its number grows with every change of membership and is never used twice.
// Steps count as in training: after step s a state is that of step s, a new run has that of step 0.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::elastic {

using MemberId = std::uint64_t;  // of one process, for its life; random, drawn by whoever starts it
using Generation = std::uint64_t;
using RunId = std::uint64_t;  // random, drawn by the coordinator that begins a run; 0: none

inline constexpr std::int64_t kNoStep = -1;

// --- From a member.

// "I am in no generation and want a place in the next one." Ends the generation that it was in, if any.
struct Join {
  MemberId member = 0;
  std::string host = {};         // equal for members of one host
  Generation generation = 0;     // the last one that it was in; 0: none
  std::int64_t held = kNoStep;   // the step whose state it holds a part of; kNoStep: it holds nothing
  std::int64_t voted = kNoStep;  // the step that it voted for and never heard the decision of
  std::string reason = {};       // why it left; for people
  // Counts the Joins of this member from 1: one that was on its way for so long that a later one has come
  // before it, and one that comes twice, say nothing.
  std::uint64_t attempt = 0;
  RunId run = 0;  // that of the generation
  bool operator==(const Join&) const = default;
};

// "All members of the generation are connected, and this is the step that we go on from."
struct Begun {
  MemberId member = 0;
  Generation generation = 0;
  std::int64_t step = 0;
  bool operator==(const Begun&) const = default;
};

// "I am alive"; what it has done is counted in `progress`, by the thread that trains.
struct Beat {
  MemberId member = 0;
  Generation generation = 0;
  std::int64_t step = 0;
  std::uint64_t progress = 0;
  bool waits = false;  // and has not to get on meanwhile (activity.h)
  bool operator==(const Beat&) const = default;
};

// "I can apply this step, and I can still do without it."
struct Vote {
  MemberId member = 0;
  Generation generation = 0;
  std::int64_t step = 0;
  bool operator==(const Vote&) const = default;
};

// "I have done all that there was to do, and end." A Dismiss answers it, and until then it is said again over
// every new connection: one that ends tells nothing of what was heard.
struct Leave {
  MemberId member = 0;
  bool operator==(const Leave&) const = default;
};

using FromMember = std::variant<Join, Begun, Beat, Vote, Leave>;

// --- From the coordinator.

// A place in a new generation.
struct Place {
  Generation generation = 0;
  std::int32_t rank = 0;
  std::vector<MemberId> members = {};  // by rank
  // The newest step that was decided: who has voted for it and never heard applies it now; who has voted for
  // a later one forgets that. kNoStep: none was.
  std::int64_t decided = kNoStep;
  std::uint64_t attempt = 0;  // of the Join that it answers: a place for an older one is none
  RunId run = 0;
  // Where the members of the generation meet, on the host of the coordinator; set by whoever serves there.
  std::uint16_t rendezvous_port = 0;
  // Nothing is trained any more: save what the members hold, and leave.
  bool only_saves = false;
  bool operator==(const Place&) const = default;
};

// All have voted: apply the step.
struct Decision {
  Generation generation = 0;
  std::int64_t step = 0;
  bool regroup = false;  // then leave the generation and join again: membership changes
  bool operator==(const Decision&) const = default;
};

// The generation has lost a member: forget the step under way, and join again.
struct Abandon {
  Generation generation = 0;
  std::string reason = {};
  bool operator==(const Abandon&) const = default;
};

// The run goes on without this member, or is over: end. Also the answer to Leave.
struct Dismiss {
  bool is_over = false;  // the run; or else it goes on
  std::string reason = {};
  bool operator==(const Dismiss&) const = default;
};

using FromCoordinator = std::variant<Place, Decision, Abandon, Dismiss>;

// --- To an agent, which keeps workers running on a further host.

// What its workers have to know of the run; the first message, and said once.
struct Brief {
  std::string text;
  bool operator==(const Brief&) const = default;
};

// The process of this member must end, if it is one of yours.
struct Kill {
  MemberId member = 0;
  std::string reason;
  bool operator==(const Kill&) const = default;
};

// The run is over.
struct Over {
  bool is_finished = false;
  std::string reason;
  bool operator==(const Over&) const = default;
};

using ToAgent = std::variant<Brief, Kill, Over>;

// --- From an agent.

// Somebody wants the run to end; the workers of the agent were told so. Said once on each connection.
struct WindUp {
  std::string reason;
  bool operator==(const WindUp&) const = default;
};

// The process of this member has ended: where, and how; for people.
struct Ended {
  MemberId member = 0;
  std::string reason;
  bool operator==(const Ended&) const = default;
};

using FromAgent = std::variant<WindUp, Ended>;

}  // namespace lockstep::elastic
