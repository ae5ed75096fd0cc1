// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"
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

// A weight whose rows are divided among lanes as those of a DividedTable (embedding.h) are.
struct DividedHead {
  std::span<const Parameter* const> parts;  // of the lanes here
  std::int64_t vocabulary = 0;              // of all lanes
};
// `x` holds the tokens that lie here (Lanes::held), `targets` are those of all tokens. Every member of the
// team gets the losses of all tokens. With one lane these are the functions above.
HeadLoss head_loss_with_gradients(const at::Tensor& x, const DividedHead& head, const at::Tensor& targets,
                                  float scale, const Lanes& lanes);
at::Tensor head_loss(const at::Tensor& x, const DividedHead& head, const at::Tensor& targets,
                     const Lanes& lanes);

}  // namespace lockstep::nn
