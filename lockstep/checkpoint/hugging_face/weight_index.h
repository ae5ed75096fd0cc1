// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

// The files beside model.safetensors.index.json that its text names; at least one. `name` is what errors call
// it. DataError when it is corrupt or names something that is no safetensors file of its own folder.
std::set<std::string> files_of_index(std::string_view json, const std::string& name);

}  // namespace lockstep::checkpoint
