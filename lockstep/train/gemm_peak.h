// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/dtype.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// What all ranks of `world` together reach in our GEMM on 1024 x 1024 x 1024, in GFLOP/s: each measures for
// about 0.2 s, all at the same time, with the threads that kernels use now, and counts its quickest product.
double measured_gemm_peak(DType dtype, const comm::Communicator& world);

}  // namespace lockstep::train
