// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gemm_peak.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/seconds_since.h"
#include "lockstep/kernels/compute/gemm/gemm.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kSide = 1024;
constexpr std::chrono::milliseconds kTime{200};

double seconds_of_a_product(DType dtype) {
  const std::vector<std::byte> factor(kSide * kSide * size_of(dtype));
  std::vector<std::byte> product(factor.size());
  const kernels::ConstMatrix from = kernels::matrix_of(factor.data(), dtype, kSide, kSide);
  const kernels::Matrix to = kernels::matrix_of(product.data(), dtype, kSide, kSide);
  const auto once = [&] {
    const auto began = Clock::now();
    kernels::gemm({.matrix = from}, {.matrix = from}, to);
    return seconds_since(began);
  };
  once();  // the first call prepares
  double best = once();
  for (const Deadline end = Deadline::after(kTime); !end.passed();) best = std::min(best, once());
  return best;
}

}  // namespace

double measured_gemm_peak(DType dtype, const comm::Communicator& world) {
  world.barrier();
  double gflops = 2.0 * kSide * kSide * kSide / seconds_of_a_product(dtype) / 1e9;
  world.all_reduce(as_writable_bytes_of(gflops), {.dtype = DType::fp64});
  return gflops;
}

}  // namespace lockstep::train
