// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace lockstep {

// "1 lane", "8 lanes", "3 batches".
template <std::integral Number>
std::string counted(Number count, std::string_view what, std::string_view plural_ending = "s") {
  std::string text = std::to_string(count);
  text.append(" ").append(what);
  if (count != 1) text.append(plural_ending);
  return text;
}

}  // namespace lockstep
