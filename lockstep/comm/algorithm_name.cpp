// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/algorithm_name.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {

using schedule::Algorithm;
using schedule::parse_algorithm;

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
  const AlgorithmName name{.algorithm = Algorithm::hierarchical,
                           .inner = parse_algorithm(text.substr(open + 1, comma - open - 1)),
                           .outer = parse_algorithm(text.substr(comma + 1, text.size() - comma - 2))};
  if (name.inner == Algorithm::hierarchical || name.outer == Algorithm::hierarchical) {
    throw UsageError("a hierarchy cannot be part of a hierarchy: name two other algorithms");
  }
  return name;
}

}  // namespace lockstep::comm
