// SPDX-License-Identifier: Apache-2.0
//
// Names that users type: found in the table, or refused with the name that was probably meant.
#pragma once

#include <span>
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

// The flag that was probably meant by one without a section, such as "--steps" or "--wokers": one of
// `others`, or the flag of a key; empty when none is close. Dashes stand for underscores.
std::string meant_flag(std::string_view typed, std::span<const std::string> others = {});

}  // namespace lockstep::spec
