// SPDX-License-Identifier: Apache-2.0
//
// Why does an operation not go on? Looks at what the peers have said and whether they live.
#pragma once

#include <exception>
#include <string>

#include "lockstep/comm/operation.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// How users know the operation: "all_reduce #3 on dp". Calls are counted by group and stream.
std::string place(const Operation& operation);

// A failure that a rank reports. A rank that fails because another one did passes that one's report on.
struct Report {
  Rank rank = -1;
  std::string why;

  bool operator==(const Report&) const = default;
};
// Whose failure stands at the beginning of what `reporter` says, and why it happened. Pure.
Report first_cause(Rank reporter, const std::string& why);

// Where ranks beat while somebody waits for an operation, of whatever group: a stream of the world without
// other notices.
transport::StreamId world_pulse_stream();

// As users know ranks: by the world, whatever their places in the group. -1 stays.
Rank in_world(const Group& group, Rank rank);

// Whom the operation waits for: of several the first that shows no sign of life, because two that wait for
// each other and for a third would otherwise only name each other. -1: nobody.
Rank awaited_peer(const Operation& operation);

// Notes which of the others show signs of life. To be called at every look at a stalled operation.
void listen(Operation& operation, transport::Endpoint& endpoint);

// For an operation that is about to begin, when it will hear nothing of its peers or the one before it did
// not: such a one ends well whatever the others do. The error to end it with, if they have failed, have made
// another call before, or are gone although it has something to send to them; otherwise null.
std::exception_ptr diagnose_unheard(const Operation& operation, transport::Endpoint& endpoint);

// For an operation that has not moved for a while: the error to end it with, or null while there is still
// hope. Null is never returned once its deadline has passed.
std::exception_ptr diagnose(const Operation& operation, transport::Endpoint& endpoint);

}  // namespace lockstep::comm
