// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/algorithm_name.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {

using schedule::Algorithm;
using schedule::parse_algorithm;

namespace {

Algorithm parse_part(std::string_view text) {
  if (text == name_of(Algorithm::hierarchical)) {
    throw UsageError("a hierarchy cannot be part of a hierarchy: name two other algorithms");
  }
  return schedule::parse_level_algorithm(text);
}

}  // namespace

std::string to_string(const AlgorithmName& name) {
  if (name.algorithm != Algorithm::hierarchical) return std::string(name_of(name.algorithm));
  return fmt::format("{}({},{})", name_of(name.algorithm), name_of(name.inner), name_of(name.outer));
}

AlgorithmName parse_algorithm_name(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return {.algorithm = parse_algorithm(text)};

  const std::size_t comma = text.find(',', open);
  if (text.substr(0, open) != name_of(Algorithm::hierarchical) || comma == std::string_view::npos ||
      text.back() != ')') {
    throw UsageError(
        "only hierarchical has parts: name the algorithm inside hosts and the one between them, as in "
        "hierarchical(ring,tree)");
  }
  return {.algorithm = Algorithm::hierarchical,
          .inner = parse_part(text.substr(open + 1, comma - open - 1)),
          .outer = parse_part(text.substr(comma + 1, text.size() - comma - 2))};
}

}  // namespace lockstep::comm
