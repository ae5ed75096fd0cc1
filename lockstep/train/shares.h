// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// One value of every parameter in the layout of the whole model, from ranks that have those of their shares:
// `own_of` gives them by bucket, of fp32 or a dtype of two bytes. All ranks call it together. Those that do
// not want them get an undefined tensor, and need memory for one bucket only, unless the model is divided.
at::Tensor gather_whole(const Holding& holding, DType dtype,
                        const std::function<ConstBytes(std::size_t bucket)>& own_of, bool wanted = true);

}  // namespace lockstep::train
