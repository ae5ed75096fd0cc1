// SPDX-License-Identifier: Apache-2.0
//
// Why does an operation not go on? Looks at what the peers have said and whether they live.
#pragma once

#include <exception>

#include "lockstep/comm/operation.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Notes which of the others show signs of life. To be called at every look at a stalled operation.
void listen(Operation& operation, transport::Endpoint& endpoint);

// For an operation that has not moved for a while: the error to end it with, or null while there is still
// hope. Null is never returned once its deadline has passed.
std::exception_ptr diagnose(const Operation& operation, transport::Endpoint& endpoint);

}  // namespace lockstep::comm
