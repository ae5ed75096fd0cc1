// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/pass.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

namespace lockstep::model {

BlockPass forward(const Block& block, const at::Tensor& hidden, const Batch& batch,
                  BlockParameters parameters) {
  const at::AutoGradMode recording(true);
  BlockPass pass;
  if (hidden.defined()) pass.input = hidden.detach().requires_grad_();
  pass.output = block.forward(pass.input, batch, parameters);
  return pass;
}

at::Tensor forward_only(const Block& block, const at::Tensor& hidden, const Batch& batch,
                        BlockParameters parameters) {
  const at::NoGradGuard not_recording;
  return block.forward(hidden, batch, parameters);
}

at::Tensor backward(BlockPass&& pass, const at::Tensor& output_gradient) {
  const BlockPass mine = std::move(pass);
  torch::autograd::backward({mine.output}, {output_gradient});
  return mine.input.defined() ? mine.input.grad() : at::Tensor();
}

at::Tensor backward(BlockPass&& pass, const at::Tensor& output_gradient, nn::Additions& later) {
  const nn::PutOff put_off(later);
  return backward(std::move(pass), output_gradient);
}

}  // namespace lockstep::model
