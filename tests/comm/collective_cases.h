// SPDX-License-Identifier: Apache-2.0
//
// What every communicator must do, whatever carries it. Each case is called by all ranks of `world` together.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::test {

struct CollectiveCase {
  std::string name;
  void (*run)(comm::Communicator& world);
};

// For the messages of parameterized tests.
inline void PrintTo(const CollectiveCase& collective_case, std::ostream* out) {
  *out << collective_case.name;
}

const std::vector<CollectiveCase>& collective_cases();

}  // namespace lockstep::test
