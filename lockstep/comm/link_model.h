// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::comm {

// What it takes to move a message over one kind of link.
struct Link {
  double latency_us = 0;            // from the call that offers it until the peer can use it
  double message_us = 0;            // work of the sender and the receiver beside the bytes
  double gigabytes_per_second = 1;  // of one rank (memory) or of one host (network)

  bool operator==(const Link&) const = default;
};

// What the choice of algorithms rests on. `lockstep bench collectives --tune` measures it; the defaults are
// from the machine that docs/benchmarks/collectives.md names. All ranks of a group must use the same.
struct LinkModel {
  Link memory{.latency_us = 0.3, .message_us = 0.1, .gigabytes_per_second = 10};  // loopback and shm
  Link network{.latency_us = 15, .message_us = 4, .gigabytes_per_second = 2};     // tcp
  std::optional<Link> mpi = {};          // in the place of `network` over MPI; none: as that
  double add_gigabytes_per_second = 12;  // one operand added to another

  bool operator==(const LinkModel&) const = default;
};

// The model of a group whose ranks all speak over MPI, which has no links but these.
LinkModel over_mpi(LinkModel model);

// As `lockstep bench collectives --tune` prints it: a part of TOML, with one number to a line.
//   [comm.model]
//   add_gigabytes_per_second = 12
//   [comm.model.memory]
//   latency_us = 0.3
//   ...
// [comm.model.mpi] is there if there is such a link.
std::string to_toml(const LinkModel& model);

// Reads that back; comments and blank lines are skipped. UsageError naming `name` (of the file) and the line
// unless every value is there once and makes sense; [comm.model.mpi] may be left out as a whole.
LinkModel parse_link_model(std::string_view text, std::string_view name);
LinkModel load_link_model(const std::string& path);

}  // namespace lockstep::comm
