// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/shared_gradients.h"

#include <algorithm>
#include <bit>

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/lanes/sum.h"

namespace lockstep::parallel {
namespace {

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

// Calls body(lanes that are summed, where) for all sums that are complete here, one behind the other in
// memory.
template <typename Body>
void each_sum(std::span<const std::vector<at::Tensor>> parameters, std::size_t together, const Body& body) {
  std::int64_t place = 0;
  for (const std::vector<at::Tensor>& lanes : parameters) {
    for (std::size_t first = 0; first < lanes.size(); first += together) {
      body(std::span(lanes).subspan(first, together), place);
      place += lanes[first].numel();
    }
  }
}

}  // namespace

SharedGradients::SharedGradients(const comm::Communicator& group, int lanes, std::span<const int> sharing)
    : here_(static_cast<std::size_t>(lanes / group.size())) {
  for (const int count : sharing) {
    LOCKSTEP_CHECK(count >= 1 && count <= lanes && std::has_single_bit(static_cast<unsigned>(count)));
    const int ranks = std::max(1, count / static_cast<int>(here_));
    if (ranks == 1) {
      levels_.push_back({count, comm::Communicator()});
    } else if (ranks == group.size()) {
      levels_.push_back({count, group});
    } else {
      levels_.push_back({count, group.split(group.rank() / ranks, group.rank(), group.name() + " sharing")});
    }
  }
}

const comm::Communicator& SharedGradients::ranks_of(int sharing) const {
  const auto level = std::ranges::find(levels_, sharing, &Level::sharing);
  LOCKSTEP_CHECK(level != levels_.end(), "lanes share in a number that was not prepared");
  return level->ranks;
}

void SharedGradients::sum(std::span<const std::vector<at::Tensor>> parameters, int sharing) const {
  const comm::Communicator& ranks = ranks_of(sharing);
  const std::size_t together = std::min(static_cast<std::size_t>(sharing), here_);
  std::int64_t elements = 0;
  each_sum(parameters, together, [&](auto lanes, std::int64_t) { elements += lanes[0].numel(); });
  const at::Tensor sums = at::empty({elements}, at::kFloat);
  each_sum(parameters, together, [&](auto lanes, std::int64_t place) {
    std::vector<const std::byte*> data;
    for (const at::Tensor& lane : lanes) data.push_back(data_of(lane));
    kernels::sum_lanes(DType::fp32, data, data_of(sums.narrow(0, place, lanes[0].numel())),
                       static_cast<std::size_t>(lanes[0].numel()));
  });
  ranks.all_reduce({data_of(sums), sums.nbytes()}, {.exact = true});
  each_sum(parameters, together, [&](auto lanes, std::int64_t place) {
    for (const at::Tensor& lane : lanes) lane.view({-1}).copy_(sums.narrow(0, place, lane.numel()));
  });
}

}  // namespace lockstep::parallel
