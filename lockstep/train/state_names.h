// SPDX-License-Identifier: Apache-2.0
//
// How checkpoints name the tensors of a training state.
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/model/parameters.h"

namespace lockstep::train {

// Of the values of a parameter.
std::string value_tensor(const std::string& parameter);
// Of what an optimizer remembers: of AdamW, which remembers 2 numbers of each element, the averages of
// gradients and of their squares; of SGD the momentum.
std::string moment_tensor(int index, int moments, const std::string& parameter);

// All of them.
std::vector<checkpoint::LogicalTensor> state_tensors(const model::FlatLayout& whole, int moments);

// UsageError when the checkpoint has no such tensor, or one of another shape.
void require_tensor(const checkpoint::Checkpoint& from, const std::string& name,
                    const std::vector<std::int64_t>& shape);

}  // namespace lockstep::train
