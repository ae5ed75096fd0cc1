// SPDX-License-Identifier: Apache-2.0
//
// The ranks that share every layer, as nn sees them.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/comm/communicator.h"
#include "lockstep/nn/lanes.h"

namespace lockstep::parallel {

struct TeamOptions {
  int lanes = 1;                // a power of two that the size of the group divides
  bool divides_tokens = false;  // sequence parallelism
  std::uint32_t stream = 0;     // of the group
};

// Rank r of the group computes the r-th of equal runs of lanes. A group of one computes all of them.
class TensorTeam final : public nn::LaneTeam {
 public:
  // UsageError when the size of the group does not divide the lanes.
  TensorTeam(comm::Communicator group, const TeamOptions& options);

  nn::LaneShare share() const override { return share_; }
  void all_reduce(const at::Tensor& values) const override;
  void reduce_scatter(const at::Tensor& rows) const override;
  void all_gather(const at::Tensor& rows) const override;
  std::unique_ptr<nn::LaneSum> start_all_reduce(const at::Tensor& values) const override;
  std::unique_ptr<nn::LaneSum> start_reduce_scatter(const at::Tensor& rows) const override;
  std::unique_ptr<nn::LaneSum> start_reduce(const at::Tensor& values, int lane) const override;

 private:
  comm::Communicator group_;
  nn::LaneShare share_;
  std::uint32_t stream_;
};

}  // namespace lockstep::parallel
