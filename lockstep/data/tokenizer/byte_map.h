// SPDX-License-Identifier: Apache-2.0
//
// The visible alphabet of byte-level vocabularies, as GPT-2 introduced it: bytes 33-126, 161-172 and 174-255
// stand for themselves as code points, and the other 68, in order, are U+0100 and the following.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::data {

std::string to_visible(std::string_view bytes);

// None when a character is outside of the alphabet. `text` must be valid UTF-8.
std::optional<std::string> from_visible(std::string_view text);

}  // namespace lockstep::data
