// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/data/prepare/document_reader.h"

namespace lockstep::data {

// The text of a piece: for JSON the string under `json_key`. DataError naming file and place when it is not
// valid JSON, has no such string, or is not valid UTF-8.
std::string text_of(Piece piece, const std::string& json_key);

}  // namespace lockstep::data
