// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/linear_sum.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/lanes/sum.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

using kernels::Store;
using kernels::transposed;
using SharedAdditions = std::shared_ptr<Additions>;

// The products of the lanes here, summed over these lanes, some tokens at a time.
class Products {
 public:
  // The lists outlive this. `sums` gets a row for each token; `most` are computed at a time.
  Products(at::TensorList inputs, at::TensorList weights, const at::Tensor& sums, std::int64_t most)
      : inputs_(inputs), weights_(weights), sums_(sums) {
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      others_.push_back(at::empty({most, sums.size(1)}, sums.options()));
    }
  }

  void compute(const LaneRun& tokens) const {
    const kernels::Matrix sum = rows_of(matrix_of(sums_), tokens);
    std::vector<const std::byte*> products;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      // The first one lies where the sum will.
      const kernels::Matrix product = i == 0 ? sum : rows_of(matrix_of(others_[i - 1]), {0, tokens.count});
      kernels::gemm({rows_of(matrix_of(inputs_[i]), tokens)}, transposed(matrix_of(weights_[i])), product);
      products.push_back(product.data);
    }
    kernels::sum_lanes(sum.dtype, products, sum.data, sum.rows * sum.columns);
  }

 private:
  at::TensorList inputs_;
  at::TensorList weights_;
  at::Tensor sums_;
  std::vector<at::Tensor> others_;
};

std::int64_t longest(const std::vector<LanePiece>& pieces) {
  std::int64_t most = 0;
  for (const LanePiece& piece : pieces) most = std::max(most, piece.tokens.count);
  return most;
}

at::Tensor sum_in_pieces(at::TensorList inputs, at::TensorList weights, const Lanes& lanes) {
  const at::Tensor room = room_for_sums(lanes, weights[0].size(0), inputs[0].options());
  const std::vector<LanePiece> pieces = lane_pieces(lanes.tokens, lanes.team->share().lanes);
  const Products products(inputs, weights, room, longest(pieces));
  if (pieces.size() == 1) {
    products.compute(pieces[0].tokens);
    return sum_over_members(room, lanes);
  }
  std::vector<std::unique_ptr<LaneSum>> sums;
  for (const LanePiece& piece : pieces) {
    products.compute(piece.tokens);
    const at::Tensor rows = room.narrow(0, piece.tokens.first, piece.tokens.count);
    sums.push_back(lanes.divide_tokens() ? lanes.team->start_reduce(rows, piece.lane)
                                         : lanes.team->start_all_reduce(rows));
  }
  for (const std::unique_ptr<LaneSum>& sum : sums) sum->wait();
  return held_of(room, lanes);
}

// Of each lane here, what autograd passes on as one list.
struct OfLanes {
  explicit OfLanes(at::TensorList inputs_and_weights)
      : inputs(inputs_and_weights.slice(0, inputs_and_weights.size() / 2)),
        weights(inputs_and_weights.slice(inputs_and_weights.size() / 2)) {}

  at::TensorList inputs;
  at::TensorList weights;
};

struct LinearSum : torch::autograd::Function<LinearSum> {
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs_and_weights,
                            const std::vector<at::Tensor>& weight_gradients, const Lanes& lanes,
                            const SharedAdditions& additions) {
    context->save_for_backward(inputs_and_weights.vec());
    context->saved_data["gradients"] = weight_gradients;
    context->saved_data["lanes"] = keep(lanes);
    context->saved_data["additions"] = keep(additions);
    const OfLanes of(inputs_and_weights);
    const at::Tensor sum = sum_in_pieces(of.inputs, of.weights, lanes);
    return lanes.divide_tokens() ? sum : sum.view(sizes_with_last(of.inputs[0], sum.size(1)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const OfLanes of(saved);
    const at::Tensor dy = gather_tokens(gradients[0], kept<Lanes>(context->saved_data["lanes"]));
    const std::vector<at::Tensor> sums = context->saved_data["gradients"].toTensorVector();
    const auto& additions = kept<SharedAdditions>(context->saved_data["additions"]);
    variable_list result;
    for (std::size_t i = 0; i < of.inputs.size(); ++i) {
      add_to_gradients(
          // Detached: an input refers to the functions before it, and these to the additions.
          [dy, x = of.inputs[i].detach(), sum = sums[i]] {
            kernels::gemm(transposed(matrix_of(dy)), {matrix_of(x)}, matrix_of(sum), Store::add);
          },
          additions.get());
      result.push_back(at::empty(of.inputs[i].sizes(), dy.options()));
      kernels::gemm({matrix_of(dy)}, {matrix_of(of.weights[i])}, matrix_of(result.back()));
    }
    result.resize(saved.size() + 3);
    return result;
  }
};

}  // namespace

at::Tensor linear_sum(const LaneLinears& linears, const Lanes& lanes) {
  LOCKSTEP_CHECK(lanes.several() && static_cast<int>(linears.inputs.size()) == lanes.here() &&
                     linears.weights.size() == linears.inputs.size(),
                 "a linear function for each lane here");
  std::vector<at::Tensor> inputs_and_weights, gradients;
  for (const at::Tensor& input : linears.inputs) {
    require_kernels_for_lanes(input, lanes);
    inputs_and_weights.push_back(as_rows(input));
  }
  for (const Parameter* weight : linears.weights) {
    inputs_and_weights.push_back(weight->value);
    gradients.push_back(weight->gradient);
  }
  return LinearSum::apply(at::TensorList(inputs_and_weights), gradients, lanes, linears.additions);
}

}  // namespace lockstep::nn
