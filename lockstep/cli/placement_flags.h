// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/rendezvous/environment.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

// The flags that say where this process stands (--rank, --world, --master-addr, ..., --hostfile), for every
// subcommand that joins a run. Must outlive the parser.
class PlacementFlags {
 public:
  void add_to(CLI::App& command);

  // Command line over environment over defaults.
  rendezvous::Placement resolve() const;

 private:
  rendezvous::Settings settings_;
  std::string host_file_;
};

}  // namespace lockstep::cli
