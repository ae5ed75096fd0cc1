// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::model {

// How Hugging Face's files have a parameter.
struct StateName {
  std::string name;
  std::string other_name = {};  // that some files have instead; empty: none
  bool transposed = false;      // with respect to the shape that the model declares
};

}  // namespace lockstep::model
