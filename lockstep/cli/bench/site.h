// SPDX-License-Identifier: Apache-2.0
//
// Where the ranks of a benchmark run: all on this host, some of them perhaps as if on others. Pure.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/connect.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {

struct Site {
  int ranks = 2;
  std::string transport = "auto";  // as --transport has it
  std::vector<int> ranks_per_host =
      {};  // that ranks pretend to be on; empty: what the transport makes of one
};

// What carries the messages, as rows name it: "auto" is shm between ranks of one host and tcp between others,
// "shm+tcp" if there are both.
std::string transport_of(const Site& site);

// By rank, the number of its pretended host; empty when there are none.
std::vector<int> pretended_hosts(const Site& site);

// What the communicators of such ranks believe about their hosts.
comm::Topology topology_of(const Site& site);

// What they choose algorithms by where `model` is given to all: over MPI by its links.
comm::LinkModel links_of(const Site& site, const comm::LinkModel& model);

}  // namespace lockstep::cli
