// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint diff`: in what two differ.
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/store/reader.h"

namespace lockstep::cli {

// Of something that both have, or only one.
struct Difference {
  std::string what;  // "tensor model.w, element 5 [1, 2]", "progress.step"
  std::string first;
  std::string second;
  bool of_layout = false;  // says only who has computed it, which changes no value
  bool operator==(const Difference&) const = default;
};

// Values are equal when their bits are. Of each tensor the first element that differs is named; nothing is
// said about who has written them and how they are cut.
std::vector<Difference> differences_between(checkpoint::Checkpoint& first, checkpoint::Checkpoint& second);

// The configurations' keys with different values, or without one in one of them.
std::vector<Difference> configuration_differences(const std::string& first, const std::string& second);

// But for the layout.
bool are_equal(const std::vector<Difference>& differences);

// Differences of the layout stand apart.
std::string difference_text(const std::vector<Difference>& differences, const checkpoint::Checkpoint& first);
std::string difference_json(const std::vector<Difference>& differences);

}  // namespace lockstep::cli
