// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/places.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {

void check_places(const char* kernel, const Places& places, std::size_t rows, std::size_t known) {
  if (rows == 0) return;
  if (places.length == 0 || rows % places.length != 0) {
    throw UsageError(fmt::format("{}: {} rows are not whole sequences of {}", kernel, rows, places.length));
  }
  if (places.first_place > known || places.length > known - places.first_place) {
    throw UsageError(fmt::format("{}: {} places from {} on are wanted of a table of {}", kernel,
                                 places.length, places.first_place, known));
  }
}

}  // namespace lockstep::kernels
