// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace lockstep {

// What programs end with after an error; docs/errors.md.
namespace exit_code {
inline constexpr int kBadUsage = 2;      // flag, environment, configuration or setup; too little memory
inline constexpr int kBadData = 65;      // a corrupt or hostile file or message
inline constexpr int kInternal = 70;     // a bug of ours
inline constexpr int kInUse = 73;        // another process writes the same folder or files
inline constexpr int kInterrupted = 75;  // communication failed: may be tried or resumed
}  // namespace exit_code

// That of the error's kind; kInternal for those that no library of ours throws. `lockstep launch` tells by it
// a rank that only lost a peer from the one that failed first.
int exit_code_of(const std::exception& error);

// Memory or threads are lacking, whichever way it was told.
bool is_lack_of_memory(const std::exception& error);

}  // namespace lockstep
