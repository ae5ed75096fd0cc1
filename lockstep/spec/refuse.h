// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::spec {

// UsageError "place: sentence"; only the sentence when the place is not known.
[[noreturn]] inline void refuse(const std::string& place, const std::string& sentence) {
  throw UsageError(place.empty() ? sentence : place + ": " + sentence);
}

}  // namespace lockstep::spec
