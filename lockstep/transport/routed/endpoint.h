// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// Where a rank is found: its place in one of the parts.
struct Route {
  std::size_t part = 0;
  Rank rank = 0;
};

// Several endpoints seen as one, such as shm between the ranks of a host and tcp between hosts.
struct RoutedParts {
  Rank rank = 0;                                 // our place in the whole
  std::vector<Route> routes;                     // by rank of the whole, ourselves included
  std::vector<std::unique_ptr<Endpoint>> parts;  // at least one
  std::size_t memory_part = 0;                   // whose registered memory allocate() gives
};

// UsageError when a route leads nowhere. Messages, notices and life of a peer are those of its part; what we
// publish goes to all parts.
std::unique_ptr<Endpoint> make_routed(RoutedParts parts);

}  // namespace lockstep::transport
