// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/update/optimizers.h"

namespace lockstep::kernels {
namespace {

void write_working_copy(const Parameters& parameters) {
  if (parameters.working != nullptr)
    from_floats(parameters.master, parameters.working, parameters.working_dtype);
}

}  // namespace

void adamw_reference(const AdamW& how, const Parameters& parameters, std::span<float> mean,
                     std::span<float> square) {
  const double mean_correction = 1.0 - std::pow(double{how.beta1}, static_cast<double>(how.step));
  const double square_correction = 1.0 - std::pow(double{how.beta2}, static_cast<double>(how.step));
  for (std::size_t i = 0; i < parameters.master.size(); ++i) {
    const double g = double{parameters.gradient[i]} * parameters.gradient_scale;
    const double m = how.beta1 * double{mean[i]} + (1.0 - how.beta1) * g;
    const double s = how.beta2 * double{square[i]} + (1.0 - how.beta2) * g * g;
    const double change = m / mean_correction / (std::sqrt(s / square_correction) + how.epsilon);
    const double decayed = parameters.master[i] * (1.0 - double{how.learning_rate} * how.weight_decay);
    parameters.master[i] = static_cast<float>(decayed - how.learning_rate * change);
    mean[i] = static_cast<float>(m);
    square[i] = static_cast<float>(s);
  }
  write_working_copy(parameters);
}

void sgd_reference(const Sgd& how, const Parameters& parameters, std::span<float> momentum) {
  for (std::size_t i = 0; i < parameters.master.size(); ++i) {
    const double weight = parameters.master[i];
    const double g = double{parameters.gradient[i]} * parameters.gradient_scale + how.weight_decay * weight;
    const double m = how.momentum * double{momentum[i]} + g;
    momentum[i] = static_cast<float>(m);
    parameters.master[i] = static_cast<float>(weight - how.learning_rate * m);
  }
  write_working_copy(parameters);
}

}  // namespace lockstep::kernels
