// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/activation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>

#include "lockstep/kernels/compute/activation/activation.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

struct Gelu : torch::autograd::Function<Gelu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor in = as_rows(x);
    context->save_for_backward({in});
    at::Tensor out = at::empty(x.sizes(), x.options());
    kernels::gelu_forward(matrix_of(in), matrix_of(out));
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor dx = at::empty(saved[0].sizes(), saved[0].options());
    kernels::gelu_backward(matrix_of(saved[0]), matrix_of(as_rows(gradients[0])), matrix_of(dx));
    return {dx};
  }
};

struct Swiglu : torch::autograd::Function<Swiglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
    const at::Tensor gates = as_rows(gate);
    const at::Tensor ups = as_rows(up);
    context->save_for_backward({gates, ups});
    at::Tensor out = at::empty(gate.sizes(), gate.options());
    kernels::swiglu_forward({matrix_of(gates), matrix_of(ups)}, matrix_of(out));
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor dgate = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor dup = at::empty(saved[1].sizes(), saved[1].options());
    kernels::swiglu_backward({matrix_of(saved[0]), matrix_of(saved[1])}, matrix_of(as_rows(gradients[0])),
                             {matrix_of(dgate), matrix_of(dup)});
    return {dgate, dup};
  }
};

}  // namespace

at::Tensor gelu(const at::Tensor& x) {
  return has_kernels(x) ? Gelu::apply(x) : at::gelu(x, "tanh");
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return has_kernels(gate) ? Swiglu::apply(gate, up) : at::silu(gate).mul(up);
}

}  // namespace lockstep::nn
