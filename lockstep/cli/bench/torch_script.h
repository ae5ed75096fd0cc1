// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::cli {

// bench/train/torch_gpt.py, which the program carries with it.
extern const char* const kTorchScript;

}  // namespace lockstep::cli
