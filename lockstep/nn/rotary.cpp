// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/rotary.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

using kernels::RotaryTable;
using kernels::Rotation;
using TablePointer = std::shared_ptr<const RotaryTable>;

at::Tensor rotated(const at::Tensor& x, const RotaryTable& table, std::int64_t first, Rotation rotation) {
  at::Tensor result = x.clone(at::MemoryFormat::Contiguous);
  kernels::rotate(
      table, {.length = static_cast<std::size_t>(x.size(1)), .first_place = static_cast<std::size_t>(first)},
      matrix_of(result), rotation);
  return result;
}

struct Rotary : torch::autograd::Function<Rotary> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TablePointer& table,
                            std::int64_t first) {
    context->saved_data["table"] = keep(table);
    context->saved_data["first"] = first;
    return rotated(x, *table, first, Rotation::forward);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const RotaryTable& table = *kept<TablePointer>(context->saved_data["table"]);
    return {rotated(gradients[0], table, context->saved_data["first"].toInt(), Rotation::backward), {}, {}};
  }
};

at::Tensor rotary_by_aten(const at::Tensor& x, const RotaryTable& table, std::int64_t first) {
  const std::int64_t length = x.size(1);
  const auto half = static_cast<std::int64_t>(table.width() / 2);
  const at::Tensor angles = at::empty({2, length, 1, half}, at::kFloat);
  for (std::int64_t place = 0; place < length; ++place) {
    const auto at_place = static_cast<std::size_t>(first + place);
    std::copy_n(table.cosines(at_place).data(), half, angles.data_ptr<float>() + place * half);
    std::copy_n(table.sines(at_place).data(), half, angles.data_ptr<float>() + (length + place) * half);
  }
  const at::Tensor on_device = angles.to(x.options());
  const at::Tensor& cosines = on_device[0];
  const at::Tensor& sines = on_device[1];
  const at::Tensor heads = x.reshape({x.size(0), length, -1, 2 * half});
  const at::Tensor lower = heads.narrow(3, 0, half);
  const at::Tensor upper = heads.narrow(3, half, half);
  return at::cat({lower.mul(cosines).sub(upper.mul(sines)), upper.mul(cosines).add(lower.mul(sines))}, 3)
      .reshape(x.sizes());
}

}  // namespace

at::Tensor rotary(const at::Tensor& x, const TablePointer& table, std::int64_t first) {
  if (!has_kernels(x)) return rotary_by_aten(x, *table, first);
  return Rotary::apply(x, table, first);
}

}  // namespace lockstep::nn
