// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::cli {

// Several lines: version, transports, vector instructions in use, libraries.
std::string version_text();

// The name of the vector instructions that kernels use on this machine, such as "AVX2".
std::string simd_target();

}  // namespace lockstep::cli
