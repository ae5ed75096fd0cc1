// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/lanes.h"

namespace lockstep::train {

struct SumOptions {
  bool exact = true;                              // in the order of the lane tree, whoever owns the lanes
  std::optional<comm::Algorithm> algorithm = {};  // none: chosen by measured cost
};

// UsageError when the algorithm cannot keep the order of these lanes.
void require_order(const LaneOwnership& lanes, const SumOptions& options);
// UsageError when it is a hierarchy and these hosts, by rank of the sum, make none.
void require_hosts_in_order(const std::vector<int>& hosts, const SumOptions& options);

// How the gradients of a bucket, in fp32, are summed over the lanes of all ranks. Pure decision at first,
// then the same for every bucket.
class GradientSum {
 public:
  // `scatters`: a rank needs its share of the sum only. Errors as of require_order().
  GradientSum(const comm::Communicator& communicator, const LaneOwnership& lanes, bool scatters,
              const SumOptions& options);

  // True: the collective knows nothing of lanes, and every rank brings one value, the sum of its lanes.
  bool takes_one_value() const { return by_rank_; }

  // `partials` are of this rank's complete subtrees of lanes, in their order, unless it takes one value.
  // `result` is the first of them, or that value, or any memory when the rank owns no lanes.
  comm::Work start(std::span<const Bytes> partials, Bytes result) const;

 private:
  comm::Communicator communicator_;
  comm::LanePieces pieces_;
  bool scatters_;
  SumOptions options_;
  bool by_rank_;
};

}  // namespace lockstep::train
