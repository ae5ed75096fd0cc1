// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/bias.h"

#include <vector>

#include <ATen/ops/empty.h>

#include "lockstep/kernels/compute/bias/bias.h"
#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/nn/additions.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

struct AddBias : torch::autograd::Function<AddBias> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& bias,
                            const std::vector<at::Tensor>& bias_gradients, const Lanes& lanes) {
    context->saved_data["gradients"] = bias_gradients;
    context->saved_data["lanes"] = keep(lanes);
    at::Tensor out = at::empty(x.sizes(), x.options());
    kernels::add_bias(matrix_of(as_rows(x)), matrix_of(bias), matrix_of(out));
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    add_to_gradients([dy = as_rows(gradients[0]), sums = context->saved_data["gradients"].toTensorVector(),
                      lanes = kept<Lanes>(context->saved_data["lanes"])] {
      for (int i = 0; i < lanes.here(); ++i) {
        kernels::bias_backward(rows_of(matrix_of(dy), lanes.run_here(i)),
                               floats_of(sums[static_cast<std::size_t>(i)]));
      }
    });
    return {gradients[0], {}, {}, {}};
  }
};

using Ids = std::vector<std::uint32_t>;

Ids places_of(const LaneRun& tokens, const SequencePlaces& places) {
  Ids ids;
  for (std::int64_t i = 0; i < tokens.count; ++i) {
    ids.push_back(static_cast<std::uint32_t>(places.first + (tokens.first + i) % places.length));
  }
  return ids;
}

struct AddPlaces : torch::autograd::Function<AddPlaces> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& table,
                            const std::vector<at::Tensor>& table_gradients, const Ids& ids,
                            const Lanes& lanes) {
    context->saved_data["gradients"] = table_gradients;
    context->saved_data["ids"] = keep(ids);
    context->saved_data["lanes"] = keep(lanes);
    at::Tensor out = at::empty(x.sizes(), x.options());
    kernels::embedding_forward(matrix_of(table), ids, {}, matrix_of(out));
    kernels::add_matrices(matrix_of(as_rows(x)), matrix_of(out), matrix_of(out));
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    add_to_gradients([dy = as_rows(gradients[0]), sums = context->saved_data["gradients"].toTensorVector(),
                      ids = kept<Ids>(context->saved_data["ids"]),
                      lanes = kept<Lanes>(context->saved_data["lanes"])] {
      for (int i = 0; i < lanes.here(); ++i) {
        const LaneRun run = lanes.run_here(i);
        kernels::embedding_backward(
            std::span(ids).subspan(static_cast<std::size_t>(run.first), static_cast<std::size_t>(run.count)),
            rows_of(matrix_of(dy), run), matrix_of(sums[static_cast<std::size_t>(i)]), {});
      }
    });
    return {gradients[0], {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor add_bias(const at::Tensor& x, const Parameter& bias, const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) return x.add(tracked(bias));
  return AddBias::apply(x, bias.value, gradients_by_lane(bias, lanes), lanes);
}

at::Tensor add_places(const at::Tensor& x, const Parameter& table, const SequencePlaces& places,
                      const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) {
    const at::Tensor rows = tracked(table).narrow(0, places.first, places.length);
    return x.reshape({-1, places.length, x.size(-1)}).add(rows).view(x.sizes());
  }
  return AddPlaces::apply(x, table.value, gradients_by_lane(table, lanes), places_of(lanes.held(), places),
                          lanes);
}

}  // namespace lockstep::nn
