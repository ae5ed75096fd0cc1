// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/fan.h"

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/lanes/sum.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

// The sums over the lanes here.
at::Tensor room_with_sums(at::TensorList partials, const Lanes& lanes) {
  LOCKSTEP_CHECK(static_cast<int>(partials.size()) == lanes.here(), "a partial sum for each lane here");
  std::vector<at::Tensor> rows;
  std::vector<const std::byte*> data;
  for (const at::Tensor& partial : partials) {
    rows.push_back(partial.contiguous());
    data.push_back(static_cast<const std::byte*>(rows.back().data_ptr()));
  }
  const std::int64_t width = partials[0].size(-1);
  at::Tensor room = room_for_sums(lanes, width, partials[0].options());
  kernels::sum_lanes(dtype_of(room), data, static_cast<std::byte*>(room.data_ptr()),
                     static_cast<std::size_t>(lanes.tokens * width));
  return room;
}

// sum_over_members(), with additions that run meanwhile.
at::Tensor sum_beside(Additions& additions, const at::Tensor& room, const Lanes& lanes) {
  if (additions.empty()) return sum_over_members(room, lanes);
  const std::unique_ptr<LaneSum> sum =
      lanes.divide_tokens() ? lanes.team->start_reduce_scatter(room) : lanes.team->start_all_reduce(room);
  additions.run();
  sum->wait();
  return held_of(room, lanes);
}

using SharedAdditions = std::shared_ptr<Additions>;

struct FanOut : torch::autograd::Function<FanOut> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, std::int64_t sequences,
                               const Lanes& lanes, const SharedAdditions& additions) {
    context->saved_data["lanes"] = keep(lanes);
    context->saved_data["additions"] = keep(additions);
    context->saved_data["sizes"] = x.sizes().vec();
    const at::Tensor all = gather_tokens(x, lanes).view({sequences, lanes.tokens / sequences, x.size(-1)});
    variable_list inputs;
    for (int i = 0; i < lanes.here(); ++i) inputs.push_back(all.view(all.sizes()));
    return inputs;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& lanes = kept<Lanes>(context->saved_data["lanes"]);
    const auto& additions = kept<SharedAdditions>(context->saved_data["additions"]);
    const at::Tensor sum = sum_beside(*additions, room_with_sums(gradients, lanes), lanes);
    return {sum.view(context->saved_data["sizes"].toIntVector()), {}, {}, {}};
  }
};

}  // namespace

at::Tensor room_for_sums(const Lanes& lanes, std::int64_t width, const at::TensorOptions& options) {
  LOCKSTEP_CHECK(options.device().is_cpu(), "lanes are summed in CPU memory only");
  if (!lanes.divide_tokens()) return at::empty({lanes.tokens, width}, options);
  const std::int64_t rows = lanes.run() * lanes.team->share().lanes;
  at::Tensor room = at::empty({rows, width}, options);
  room.narrow(0, lanes.tokens, rows - lanes.tokens).zero_();
  return room;
}

at::Tensor sum_over_members(const at::Tensor& room, const Lanes& lanes) {
  if (lanes.divide_tokens()) {
    lanes.team->reduce_scatter(room);
  } else {
    lanes.team->all_reduce(room);
  }
  return held_of(room, lanes);
}

at::Tensor held_of(const at::Tensor& room, const Lanes& lanes) {
  if (!lanes.divide_tokens()) return room;
  const LaneRun held = lanes.held();
  // A copy, because the room is as large as all tokens and the result may be kept for long.
  return room.narrow(0, held.first, held.count).clone();
}

at::Tensor gather_tokens(const at::Tensor& held, const Lanes& lanes) {
  const at::Tensor rows = held.reshape({-1, held.size(-1)}).contiguous();
  if (!lanes.divide_tokens()) return rows;
  const LaneRun range = lanes.held();
  LOCKSTEP_CHECK(rows.size(0) == range.count, "a row for each token that is held");
  const at::Tensor all = room_for_sums(lanes, held.size(-1), held.options());
  all.narrow(0, range.first, range.count).copy_(rows);
  lanes.team->all_gather(all);
  return all.narrow(0, 0, lanes.tokens);
}

Fan fan_out(const at::Tensor& x, std::int64_t sequences, const Lanes& lanes) {
  if (!lanes.several()) return {{x}, nullptr};
  require_kernels_for_lanes(x, lanes);
  const auto additions = std::make_shared<Additions>();
  std::vector<at::Tensor> inputs = FanOut::apply(x, sequences, lanes, additions);
  // What is not recorded is not gone back through, and would leave them lying.
  return {inputs, inputs[0].requires_grad() ? additions : nullptr};
}

}  // namespace lockstep::nn
