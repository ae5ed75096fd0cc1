// SPDX-License-Identifier: Apache-2.0
//
// A worker's side of the protocol as a state machine without threads and network. Whoever runs it
// (membership.h) sends what it gives back, hands in what comes from the coordinator, and tells the worker
// what has happened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

// What a worker brings when it asks for a place (Join).
struct Held {
  std::int64_t step = kNoStep;
  std::int64_t voted = kNoStep;
  bool operator==(const Held&) const = default;
};

// --- What has happened, for the worker.

// It has a place. Does it have to apply the step that it voted for before it does anything else? If not, that
// is to be forgotten. Does what it then holds count, that is, is it the state of the step that was decided
// last?
struct Placed {
  Place place;
  bool applies_voted = false;
  bool holds_decided = false;
  bool operator==(const Placed&) const = default;
};
// The step that it voted for was decided.
struct Decided {
  Decision decision;
  bool operator==(const Decided&) const = default;
};
// The generation has ended: what is under way is to be forgotten, except the step that it voted for.
struct GenerationEnded {
  Generation generation = 0;
  std::string reason;
  bool operator==(const GenerationEnded&) const = default;
};
// There is no place for it any more.
struct Refused {
  bool is_over = false;  // the run
  std::string reason;
  bool operator==(const Refused&) const = default;
};
// The coordinator knows that it has done everything.
struct Left {
  bool operator==(const Left&) const = default;
};
using MemberEvent = std::variant<Placed, Decided, GenerationEnded, Refused, Left>;

class Member {
 public:
  // outside: has no place and does not ask for one. voted: has a place and waits for a decision.
  // leaving: has done everything, and does not know yet that the coordinator has heard it. gone: has left or
  // was dismissed.
  enum class State { outside, joining, placed, voted, leaving, gone };

  Member(MemberId id, std::string host);

  // What the worker does; the message is to be sent. Calls that do not fit the state are bugs
  // (InternalError); state() tells whether a generation has ended meanwhile.
  Join join(const Held& held, const std::string& reason);  // outside; and placed or voted: it gives that up
  Begun begun(std::int64_t step);                          // placed
  Vote vote(std::int64_t step);                            // placed
  Leave leave();                                           // neither leaving nor gone
  // At any time; the worker counts and says what it waits for, beside the coordinator.
  Beat beat(std::uint64_t progress, bool waits) const;

  // A message of the coordinator; nothing when it is of a generation that this worker is not in any more.
  std::optional<MemberEvent> hear(const FromCoordinator& message);

  // The connection is gone, and with it the place: the coordinator gives up whoever it has no connection to.
  std::optional<MemberEvent> disconnect(const std::string& reason);
  // There is a connection again: what is to be sent first.
  std::optional<FromMember> reconnect();

  State state() const { return state_; }
  MemberId id() const { return id_; }
  Generation generation() const { return generation_; }  // the last one that it was in

 private:
  std::optional<MemberEvent> on(const Place& place);
  std::optional<MemberEvent> on(const Decision& decision);
  std::optional<MemberEvent> on(const Abandon& abandon);
  std::optional<MemberEvent> on(const Dismiss& dismiss);
  bool has_place() const { return state_ == State::placed || state_ == State::voted; }

  MemberId id_;
  std::string host_;
  State state_ = State::outside;
  Generation generation_ = 0;
  RunId run_ = 0;                // of that generation
  std::int64_t step_ = kNoStep;  // begun, decided or voted for, whichever was last
  Join join_;                    // the last one
};

}  // namespace lockstep::elastic
