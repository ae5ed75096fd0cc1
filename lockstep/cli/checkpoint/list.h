// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint ls`: what there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/store/store.h"

namespace lockstep::cli {

struct ListedCheckpoint {
  std::int64_t step = 0;
  std::string path;
  std::string problem;  // why it cannot be used; empty when nothing is known against it
  // The rest only without a problem.
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  std::optional<double> loss = {};  // none before the first step
  std::string written_by;
};

// Those of the store or run `path`, or the one that is `path`: first what was committed, the newest first,
// then what was not. UsageError when there is none.
std::vector<ListedCheckpoint> list_checkpoints(const std::string& path);

// The paths of those that were committed, as above.
std::vector<std::string> committed_in(const std::string& path);

std::string list_text(const std::vector<ListedCheckpoint>& checkpoints);
std::string list_json(const std::vector<ListedCheckpoint>& checkpoints);

}  // namespace lockstep::cli
