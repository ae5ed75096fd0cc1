// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"
#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

struct TcpOptions {
  Rank rank = 0;
  int world = 1;
  // Where the listener of each rank is reached; only those of lower ranks are used.
  std::vector<Address> addresses;
  // This rank's own, with the same credentials; used during connect_tcp() only. Not needed by the last rank.
  Listener* listener = nullptr;
  Credentials credentials;  // me.rank is this rank
  // Connections to each lower rank, 1 to 16; large messages use them all. 0: one on loopback, else two.
  int streams_per_peer = 0;
  std::stop_token stop = {};  // to give up before the deadline, with Aborted
};

// Connects this rank with all others: each dials the lower ranks and accepts the higher ones. Returns when
// all connections stand; Timeout naming the missing ranks at the deadline. UsageError when the options do not
// fit together, AuthenticationError as dial(), CommError when two processes claim to be the same rank.
//
// Destroying the endpoint first passes on what has been sent, up to a few seconds if a peer does not read.
std::unique_ptr<Endpoint> connect_tcp(const TcpOptions& options, Deadline deadline);

}  // namespace lockstep::transport
