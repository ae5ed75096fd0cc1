// SPDX-License-Identifier: Apache-2.0
//
// What every communicator must do, whatever carries it. Each case is called by all ranks of `world` together.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::test {

struct CollectiveCase {
  std::string name;
  void (*run)(comm::Communicator& world);
};

const std::vector<CollectiveCase>& collective_cases();

}  // namespace lockstep::test
