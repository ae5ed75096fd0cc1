// SPDX-License-Identifier: Apache-2.0
//
// How the enumerations of a run are spelled, in the order of their values.
#pragma once

#include <array>
#include <string_view>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

constexpr auto names_of(ModelFamily) {
  return std::to_array<std::string_view>({"gpt", "llama", "mlp"});
}
constexpr auto names_of(RopeScaling) {
  return std::to_array<std::string_view>({"none", "llama3"});
}
constexpr auto names_of(Sharding) {
  return std::to_array<std::string_view>({"sample", "batch", "feature"});
}
constexpr auto names_of(OptimizerKind) {
  return std::to_array<std::string_view>({"adamw", "sgd"});
}
constexpr auto names_of(DecayType) {
  return std::to_array<std::string_view>({"constant", "linear", "cosine", "wsd"});
}
constexpr auto names_of(Offload) {
  return std::to_array<std::string_view>({"none", "disk"});
}
constexpr auto names_of(ZeroScope) {
  return std::to_array<std::string_view>({"world", "host"});
}
// Of the element types, those that can be trained in.
constexpr auto names_of(DType) {
  return std::to_array<std::string_view>({"fp32", "bf16", "fp16"});
}

}  // namespace lockstep::spec
