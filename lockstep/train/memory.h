// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::train {

// From now on, memory that this process frees stays with it for the next allocation. By default malloc gives
// every large block back to the kernel, which hands it out again page by page, each one a fault and cleared:
// a training step frees and allocates the same tensors over and over.
void keep_freed_memory();

}  // namespace lockstep::train
