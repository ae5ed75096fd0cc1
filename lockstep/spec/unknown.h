// SPDX-License-Identifier: Apache-2.0
//
// Names that users type: found in the table, or refused with the name that was probably meant.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/spec/key.h"

namespace lockstep::spec {

// "the sections are [job], [model], ..."
std::string sections_in_words();

// UsageError "place: ..." when there is no such section.
void check_section(std::string_view section, const std::string& place);

// UsageError "place: ..." when there is no such section or key.
const Key& known_key(std::string_view section, std::string_view name, const std::string& place);

}  // namespace lockstep::spec
