// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/bytes.h"

namespace lockstep::kernels {

// The sum of memory in words of 8 bytes, whatever overflows; zeros fill up the last one. A bit that changes
// changes it. Sums of parts add up to that of the whole where all parts but the last are whole words.
std::uint64_t word_sum(ConstBytes memory);

// The same in plain C++: the twin that tests compare with.
std::uint64_t word_sum_reference(ConstBytes memory);

}  // namespace lockstep::kernels
