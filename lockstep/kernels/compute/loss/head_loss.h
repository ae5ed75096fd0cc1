// SPDX-License-Identifier: Apache-2.0
//
// The last layer of a language model and its loss in one: logits = x weight^T, softmax, cross-entropy. The
// logits of all tokens never exist at the same time: tokens are taken in chunks, and the gradients of a chunk
// are computed while its logits are at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// A token with this target has loss 0 and no gradient.
inline constexpr std::uint32_t kIgnoredTarget = 0xFFFFFFFF;

// How many tokens share a pass over the weight. More: fewer passes over the gradient of the weight, and more
// memory (chunk x vocabulary x 4 bytes).
inline constexpr std::size_t kLossChunk = 512;

struct HeadInputs {
  ConstMatrix x;       // tokens x width
  ConstMatrix weight;  // vocabulary x width, of the dtype of x
  std::span<const std::uint32_t> targets;
};

// losses[i] = -log(probability of targets[i]), in nats. UsageError when shapes do not fit or a target is not
// in the vocabulary.
void head_loss(const HeadInputs& inputs, std::span<float> losses);

// The gradients of scale * (sum of the losses): that of x is replaced, that of the weight (fp32) is added.
struct HeadGradients {
  float scale = 1.0F;
  Matrix x;
  Matrix weight;
};
void head_loss(const HeadInputs& inputs, std::span<float> losses, const HeadGradients& gradients);

// The same in plain C++, sums in fp64: the twin that tests compare with.
void head_loss_reference(const HeadInputs& inputs, std::span<float> losses, const HeadGradients& gradients);

}  // namespace lockstep::kernels
