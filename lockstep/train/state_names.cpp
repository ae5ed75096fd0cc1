// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/state_names.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"

namespace lockstep::train {

std::string value_tensor(const std::string& parameter) {
  return "model." + parameter;
}

std::string moment_tensor(int index, int moments, const std::string& parameter) {
  const char* moment = moments == 1 ? "momentum" : index == 0 ? "exp_avg" : "exp_avg_sq";
  return std::string("optimizer.") + moment + "." + parameter;
}

std::vector<checkpoint::LogicalTensor> state_tensors(const model::FlatLayout& whole, int moments) {
  std::vector<checkpoint::LogicalTensor> tensors;
  for (const model::ParameterSpec& spec : whole.specs()) {
    tensors.push_back({value_tensor(spec.name), spec.shape});
    for (int index = 0; index < moments; ++index) {
      tensors.push_back({moment_tensor(index, moments, spec.name), spec.shape});
    }
  }
  std::ranges::sort(tensors, {}, &checkpoint::LogicalTensor::name);
  return tensors;
}

void require_tensor(const checkpoint::Checkpoint& from, const std::string& name,
                    const std::vector<std::int64_t>& shape) {
  if (!from.has(name)) {
    throw UsageError(
        fmt::format("{} has no tensor {}: it is of another model or optimizer", from.path(), name));
  }
  if (from.tensor(name).shape == shape) return;
  throw UsageError(fmt::format("{}: {} has the shape [{}], and the run's has [{}]: it is of another model",
                               from.path(), name, fmt::join(from.tensor(name).shape, ", "),
                               fmt::join(shape, ", ")));
}

}  // namespace lockstep::train
