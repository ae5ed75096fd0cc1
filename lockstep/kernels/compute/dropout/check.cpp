// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/dropout/check.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

void check_dropout(const Dropout& dropout, const ConstMatrix& in, const ConstMatrix& out) {
  if (!(dropout.probability >= 0.0F && dropout.probability < 1.0F)) {
    throw UsageError(fmt::format("dropout: the probability is {} and must be at least 0 and below 1",
                                 dropout.probability));
  }
  check_like("dropout: the output", out, in);
}

}  // namespace lockstep::kernels
