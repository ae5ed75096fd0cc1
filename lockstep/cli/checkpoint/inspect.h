// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint inspect`: what is in one.
#pragma once

#include <string>

#include "lockstep/checkpoint/store/reader.h"

namespace lockstep::cli {

std::string inspect_text(const checkpoint::Checkpoint& checkpoint);
std::string inspect_json(const checkpoint::Checkpoint& checkpoint);

}  // namespace lockstep::cli
