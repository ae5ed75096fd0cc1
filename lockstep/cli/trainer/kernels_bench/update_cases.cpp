// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/cli/trainer/kernels_bench/cases.h"
#include "lockstep/cli/trainer/kernels_bench/operands.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/kernels/compute/update/split.h"
#include "lockstep/kernels/compute/update/vectors.h"

namespace lockstep::cli {
namespace {

using namespace kernels;  // NOLINT(google-build-using-namespace): every other word here is one of theirs

constexpr std::size_t kParameters = std::size_t{8} << 20;

// What a step of the optimizer needs; the working copy is there unless it is fp32.
struct Optimized {
  explicit Optimized(DType dtype)
      : working_dtype(dtype),
        master(DType::fp32, 1, kParameters),
        gradient(DType::fp32, 1, kParameters),
        first(DType::fp32, 1, kParameters),
        second(DType::fp32, 1, kParameters),
        working(dtype, 1, kParameters) {
    for (float& value : second.floats()) value = std::abs(value);
  }
  Parameters parameters() {
    return {.master = master.floats(),
            .working = working_dtype == DType::fp32 ? nullptr : working.matrix().row(0),
            .working_dtype = working_dtype,
            .gradient = gradient.floats()};
  }
  std::size_t working_bytes() const { return working_dtype == DType::fp32 ? 0 : working.bytes(); }

  DType working_dtype;
  Values master, gradient, first, second, working;
};

KernelWork adamw_step(DType dtype) {
  auto state = std::make_shared<Optimized>(dtype);
  return {.bytes = 7 * state->master.bytes() + state->working_bytes(),
          .call = [state] { adamw({}, state->parameters(), state->first.floats(), state->second.floats()); }};
}

KernelWork sgd_step(DType dtype) {
  auto state = std::make_shared<Optimized>(dtype);
  return {.bytes = 5 * state->master.bytes() + state->working_bytes(),
          .call = [state] { sgd({.momentum = 0.9F}, state->parameters(), state->first.floats()); }};
}

// Split weights are always halves of fp32 that are bf16.
struct OptimizedHalves : Optimized {
  OptimizedHalves() : Optimized(DType::bf16) { split(master.floats(), upper(), lower); }
  std::span<std::uint16_t> upper() {
    return {reinterpret_cast<std::uint16_t*>(working.matrix().row(0)), kParameters};
  }
  Parameters halves() {
    Parameters all = parameters();
    all.master = {};
    all.lower = lower;
    return all;
  }

  std::vector<std::uint16_t> lower = std::vector<std::uint16_t>(kParameters);
};

KernelWork adamw_split_step(DType) {
  auto state = std::make_shared<OptimizedHalves>();
  return {.bytes = 7 * state->master.bytes(),
          .call = [state] { adamw({}, state->halves(), state->first.floats(), state->second.floats()); }};
}

KernelWork sgd_split_step(DType) {
  auto state = std::make_shared<OptimizedHalves>();
  return {.bytes = 5 * state->master.bytes(),
          .call = [state] { sgd({.momentum = 0.9F}, state->halves(), state->first.floats()); }};
}

KernelWork norm_of_gradients(DType) {
  auto gradient = values(DType::fp32, 1, kParameters);
  return {.bytes = gradient->bytes(),
          .call = [gradient, sums = std::make_shared<std::vector<double>>(kParameters / kSquaresBlock)] {
            sums_of_squares(gradient->floats(), *sums);
          }};
}

KernelWork sum(DType) {
  auto gradient = values(DType::fp32, 1, kParameters);
  return {.bytes = gradient->bytes(),
          .call = [gradient, result = std::make_shared<double>()] { *result = sum_of(gradient->floats()); }};
}

KernelWork scale_gradient(DType) {
  auto gradient = values(DType::fp32, 1, kParameters);
  return {.bytes = 2 * gradient->bytes(), .call = [gradient] { scale(gradient->floats(), -1.0F); }};
}

KernelWork finite_check(DType) {
  auto gradient = values(DType::fp32, 1, kParameters);
  return {.bytes = gradient->bytes(),
          .call = [gradient, place = std::make_shared<std::optional<std::size_t>>()] {
            *place = first_not_finite(gradient->floats());
          }};
}

// Conversions are of one row; the threads share the rows, as within the kernels that call them.
KernelWork cast_to_floats(DType dtype) {
  auto from = values(dtype, kTokens, kFfn);
  auto to = values(DType::fp32, kTokens, kFfn);
  return {.bytes = from->bytes() + to->bytes(), .call = [from, to] {
            parallel_for(kTokens, [&](std::size_t row) {
              to_floats(from->matrix().row(row), from->matrix().dtype,
                        to->floats().subspan(row * kFfn, kFfn));
            });
          }};
}

KernelWork cast_from_floats(DType dtype) {
  auto from = values(DType::fp32, kTokens, kFfn);
  auto to = values(dtype, kTokens, kFfn);
  return {.bytes = from->bytes() + to->bytes(), .call = [from, to] {
            parallel_for(kTokens, [&](std::size_t row) {
              from_floats(from->floats().subspan(row * kFfn, kFfn), to->matrix().row(row),
                          to->matrix().dtype);
            });
          }};
}

}  // namespace

std::vector<KernelCase> update_cases() {
  return {{"adamw", adamw_step},
          {"sgd", sgd_step},
          {"adamw_split", adamw_split_step},
          {"sgd_split", sgd_split_step},
          {"norm_of_gradients", norm_of_gradients},
          {"sum", sum},
          {"scale", scale_gradient},
          {"finite_check", finite_check},
          {"cast_to_floats", cast_to_floats},
          {"cast_from_floats", cast_from_floats}};
}

}  // namespace lockstep::cli
