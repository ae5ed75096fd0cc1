// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/dropout/dropout.h"

namespace lockstep::kernels {

// UsageError unless the probability is one and the shapes fit.
void check_dropout(const Dropout& dropout, const ConstMatrix& in, const ConstMatrix& out);

// Random numbers below it let their element fall away.
constexpr std::uint32_t threshold_of(const Dropout& dropout) {
  return static_cast<std::uint32_t>(static_cast<double>(dropout.probability) * 0x1p32);
}

}  // namespace lockstep::kernels
