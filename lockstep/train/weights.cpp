// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lockstep/model/initial_values.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {
namespace {

std::span<float> part_of(const at::Tensor& flat, const model::Place& place) {
  return nn::floats_of(flat).subspan(static_cast<std::size_t>(place.first),
                                     static_cast<std::size_t>(place.count));
}

}  // namespace

Weights::Weights(const model::FlatLayout& layout, DType dtype, std::uint64_t seed, int moments)
    : layout_(layout), master_(at::empty({layout.elements()}, at::kFloat)) {
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    model::initial_values(layout.specs()[i], seed, 0, part_of(master_, layout.places()[i]));
  }
  working_ = dtype == DType::fp32 ? master_ : master_.to(nn::scalar_type_of(dtype));
  for (int i = 0; i < moments; ++i) moments_.push_back(at::zeros({layout.elements()}, at::kFloat));
}

std::span<float> Weights::master() const {
  return nn::floats_of(master_);
}

void Weights::renew_working() {
  if (!working_.is_same(master_)) working_.copy_(master_);
}

std::span<float> Weights::moment(int index) const {
  return nn::floats_of(moments_[static_cast<std::size_t>(index)]);
}

void Weights::update(const OptimizerStep& how, std::span<const float> gradients, float gradient_scale) {
  const DType dtype = nn::dtype_of(working_);
  auto* working = dtype == DType::fp32 ? nullptr : static_cast<std::byte*>(working_.data_ptr());
  for (std::size_t i = 0; i < layout_.specs().size(); ++i) {
    const model::Place& place = layout_.places()[i];
    const auto first = static_cast<std::size_t>(place.first);
    const kernels::Parameters parameters = {
        .master = part_of(master_, place),
        .working = working == nullptr ? nullptr : working + first * size_of(dtype),
        .working_dtype = dtype,
        .gradient = gradients.subspan(first, static_cast<std::size_t>(place.count)),
        .gradient_scale = gradient_scale};
    std::visit(
        [&](auto step) {
          if (!layout_.specs()[i].decays) step.weight_decay = 0.0F;
          if constexpr (std::is_same_v<decltype(step), kernels::AdamW>) {
            kernels::adamw(step, parameters, part_of(moments_[0], place), part_of(moments_[1], place));
          } else {
            kernels::sgd(step, parameters, part_of(moments_[0], place));
          }
        },
        how);
  }
}

}  // namespace lockstep::train
