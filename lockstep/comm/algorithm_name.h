// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/schedule/collective/collective.h"

namespace lockstep::comm {

// An algorithm with the parts of a hierarchy; those of any other algorithm mean nothing.
struct AlgorithmName {
  schedule::Algorithm algorithm = schedule::Algorithm::direct;
  schedule::Algorithm inner = schedule::Algorithm::direct;  // inside a host
  schedule::Algorithm outer = schedule::Algorithm::direct;  // between hosts

  bool operator==(const AlgorithmName&) const = default;
};

// "ring", or "hierarchical(ring,tree)": first what runs inside hosts, then what runs between them.
std::string to_string(const AlgorithmName& name);

// The other way round; "hierarchical" alone stands for hierarchical(direct,direct). UsageError saying what is
// accepted.
AlgorithmName parse_algorithm_name(std::string_view text);

}  // namespace lockstep::comm
