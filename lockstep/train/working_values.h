// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"

namespace lockstep::train {

// Values as blocks compute with them in a dtype, rounded as updates round: bf16 as kernels::split() does.
void write_working(std::span<const float> values, DType dtype, Bytes where);

}  // namespace lockstep::train
