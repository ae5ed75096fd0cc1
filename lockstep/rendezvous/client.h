// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "lockstep/base/deadline.h"
#include "lockstep/rendezvous/table.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::rendezvous {

// Announces one rank to the server and waits for the table. `credentials.me` must hold the arrival's rank.
// UsageError when the server refuses the run as set up (two claim one rank, worlds, versions or
// configurations differ); Timeout naming the missing ranks, or because the server cannot be reached;
// AuthenticationError, PeerLost, Aborted, DataError otherwise. Aborted also when the caller is to stop.
PeerTable meet(const transport::Address& server, Arrival arrival, const transport::Credentials& credentials,
               Deadline deadline, const std::stop_token& stop = {});

}  // namespace lockstep::rendezvous
