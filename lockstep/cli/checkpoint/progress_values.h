// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::cli {

// Its names and values, in the order of the manifest; equal texts when, and only when, the values are equal.
inline std::vector<std::pair<std::string, std::string>> progress_values(
    const checkpoint::Progress& progress) {
  return {{"step", fmt::format("{}", progress.step)},
          {"data_position", fmt::format("{}", progress.data_position)},
          {"bad_steps", fmt::format("{}", progress.bad_steps)},
          {"bad_in_a_row", fmt::format("{}", progress.bad_in_a_row)},
          {"loss_scale", fmt::format("{}", progress.loss_scale)},
          {"good_steps", fmt::format("{}", progress.good_steps)},
          {"loss", fmt::format("{}", progress.loss)}};
}

}  // namespace lockstep::cli
