// SPDX-License-Identifier: Apache-2.0
//
// Short words for the parameters that most blocks declare.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "lockstep/model/parameter_spec.h"

namespace lockstep::model {

inline ParameterSpec weight_matrix(std::string name, std::int64_t out, std::int64_t in,
                                   float deviation = 0.02F) {
  return {.name = std::move(name), .shape = {out, in}, .deviation = deviation};
}

inline ParameterSpec bias(std::string name, std::int64_t size) {
  return {.name = std::move(name), .shape = {size}, .initial = Initial::zeros, .decays = false};
}

inline ParameterSpec norm_weight(std::string name, std::int64_t size) {
  return {.name = std::move(name), .shape = {size}, .initial = Initial::ones, .decays = false};
}

// For what is added to the residual stream, so that the stream does not grow with the depth.
inline float branch_deviation(std::int64_t layers) {
  return 0.02F / std::sqrt(2.0F * static_cast<float>(layers));
}

}  // namespace lockstep::model
