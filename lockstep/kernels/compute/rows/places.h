// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace lockstep::kernels {

// Which place of its sequence a row is: row b * length + t is place first_place + t of sequence b.
struct Places {
  std::size_t length = 0;
  std::size_t first_place = 0;  // above 0 when earlier places are in a cache

  std::size_t of(std::size_t row) const { return first_place + row % length; }
};

// UsageError unless the rows are whole sequences whose places are all below `known`, the number that a table
// has. `kernel` is named in the message.
void check_places(const char* kernel, const Places& places, std::size_t rows, std::size_t known);

}  // namespace lockstep::kernels
