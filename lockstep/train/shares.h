// SPDX-License-Identifier: Apache-2.0
//
// From what ranks hold to the whole model. All ranks call these together.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <ATen/core/Tensor.h>

#include "lockstep/train/holding.h"

namespace lockstep::train {

// Flat values of the held layout, of fp32 or a dtype of two bytes, in the layout of the whole model.
at::Tensor gather_whole(const Holding& holding, const at::Tensor& values);

// The same in fp32, when a rank has the values of its share only: `own_of` gives them by bucket.
at::Tensor gather_whole(const Holding& holding,
                        const std::function<std::span<const float>(std::size_t bucket)>& own_of);

}  // namespace lockstep::train
