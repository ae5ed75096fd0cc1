// SPDX-License-Identifier: Apache-2.0
//
// What this rank lets the others know about its operations, for those who wonder why it is silent. The other
// direction is diagnose.h. Messages between two ranks are not announced: only beat() tells of one that is
// waited for.
#pragma once

#include "lockstep/comm/operation.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Publishes the call; to be called as it begins, and again when its notice has changed.
void publish_notice(const Operation& operation, transport::Endpoint& endpoint);

// From now on peers that wonder can see where we are: sends them what is published, where that is necessary.
void show_notice(const Operation& operation, transport::Endpoint& endpoint);

// For an operation that is done. One that heard nothing of its peers shows which call it was, because nobody
// drives for it any more. Throws what Channel::pump() throws.
void show_unheard(const Operation& operation, transport::Endpoint& endpoint);

// While stalled: we live, and this is whom we wait for; if somebody waits for the operation, all ranks of the
// world may know. To be called at every look at the operation, also for hearing the same of the others.
void beat(Operation& operation, transport::Endpoint& endpoint);

}  // namespace lockstep::comm
