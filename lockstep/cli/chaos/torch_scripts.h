// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::cli {

// The files of bench/chaos, as they were when the program was built.
extern const char* const kTorchrunScript;
extern const char* const kTorchJobScript;

}  // namespace lockstep::cli
