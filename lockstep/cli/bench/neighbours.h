// SPDX-License-Identifier: Apache-2.0
//
// A ring of plain TCP connections over loopback.
#pragma once

#include <memory>

#include "lockstep/comm/communicator.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::cli {

struct Neighbours {
  std::unique_ptr<transport::Connection> next;
  std::unique_ptr<transport::Connection> previous;
};

// What the ranks know each other by: a secret that one of them draws for the occasion. All ranks call it.
transport::Credentials ring_credentials(const comm::Communicator& communicator);

// Where the previous rank is awaited. Strangers are refused there and hold up nobody.
transport::Listener ring_door(const transport::Credentials& credentials);

// All ranks call it, each with its own door; other callers than the previous rank are not taken. Errors as
// dial() and Listener::accept().
Neighbours join_neighbours(const comm::Communicator& communicator, const transport::Credentials& credentials,
                           transport::Listener& door);

}  // namespace lockstep::cli
