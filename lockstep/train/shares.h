// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/partition.h"

namespace lockstep::train {

// partition.elements floats, of which this rank has the values of its own: `own_of` gives them by bucket. All
// ranks call it together.
at::Tensor gather_shares(const Partition& partition, const comm::Communicator& communicator,
                         const std::function<std::span<const float>(std::size_t bucket)>& own_of);

}  // namespace lockstep::train
