// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/arguments.h"
#include "lockstep/transport/connect/address.h"

namespace lockstep::cli {

// What follows `lockstep train` and `lockstep agent`.
struct TrainArguments {
  std::string file;                    // of the run
  std::vector<std::string> key_flags;  // --section.key value
  int workers = 0;                     // 0: not given
  std::optional<transport::Address> listen;
  std::optional<transport::Address> join;
  bool asks_for_help = false;  // then file and key_flags are empty, whatever was given
};

// RUN.toml, the flags that are no keys, and keys as flags, in any order. `command` is for messages.
// UsageError, with the flag that was probably meant for one that there is not.
TrainArguments split_arguments(const std::string& command, Arguments arguments);

}  // namespace lockstep::cli
