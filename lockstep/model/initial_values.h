// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/model/parameter_spec.h"

namespace lockstep::model {

// Elements `first` .. of the parameter's first values. They depend on the seed, the parameter's name and the
// place of the element only: whoever holds a part of a parameter can make that part.
void initial_values(const ParameterSpec& parameter, std::uint64_t seed, std::size_t first,
                    std::span<float> values);

}  // namespace lockstep::model
