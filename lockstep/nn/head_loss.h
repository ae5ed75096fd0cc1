// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// The loss of each token, in nats, and the gradient of x. `targets` are int32; a negative one is ignored: it
// has loss 0 and no gradient.
struct HeadLoss {
  at::Tensor losses;  // fp32, one per token
  at::Tensor
      x_gradient;  // of scale * (sum of the losses), like x; undefined when only the loss was asked for
};

// Logits, softmax, cross-entropy and all their gradients in one pass; the gradient of the weight is added to
// weight.gradient. x: [..., width], weight: [vocabulary, width].
HeadLoss head_loss_with_gradients(const at::Tensor& x, const Parameter& weight, const at::Tensor& targets,
                                  float scale);

// The losses alone, for evaluation.
at::Tensor head_loss(const at::Tensor& x, const Parameter& weight, const at::Tensor& targets);

}  // namespace lockstep::nn
