// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/optimizers.h"

#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/compute/update/factors.h"
#include "lockstep/kernels/compute/update/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/update/optimizers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename D>
HWY_INLINE void adam_at(D d, const AdamFactors& f, float* master, const float* gradient, float* mean,
                        float* square) {
  const auto g = hn::Mul(hn::LoadU(d, gradient), hn::Set(d, f.gradient_scale));
  const auto old_mean = hn::LoadU(d, mean);
  const auto old_square = hn::LoadU(d, square);
  const auto m = hn::MulAdd(hn::Set(d, f.new_mean), hn::Sub(g, old_mean), old_mean);
  const auto s = hn::MulAdd(hn::Set(d, f.new_square), hn::Sub(hn::Mul(g, g), old_square), old_square);
  hn::StoreU(m, d, mean);
  hn::StoreU(s, d, square);
  const auto deviation = hn::Sqrt(hn::Mul(s, hn::Set(d, f.square_correction)));
  const auto change = hn::Div(hn::Mul(m, hn::Set(d, f.rate)), hn::Add(deviation, hn::Set(d, f.epsilon)));
  hn::StoreU(hn::Sub(hn::Mul(hn::LoadU(d, master), hn::Set(d, f.keep)), change), d, master);
}

void adam_run(const AdamFactors& f, float* master, const float* gradient, float* mean, float* square,
              std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    adam_at(d, f, master + i, gradient + i, mean + i, square + i);
  for (; i < count; ++i) adam_at(one, f, master + i, gradient + i, mean + i, square + i);
}

template <typename D>
HWY_INLINE void sgd_at(D d, const Sgd& how, float scale, float* master, const float* gradient,
                       float* momentum) {
  const auto weight = hn::LoadU(d, master);
  const auto g =
      hn::MulAdd(hn::Set(d, how.weight_decay), weight, hn::Mul(hn::LoadU(d, gradient), hn::Set(d, scale)));
  const auto m = hn::MulAdd(hn::Set(d, how.momentum), hn::LoadU(d, momentum), g);
  hn::StoreU(m, d, momentum);
  hn::StoreU(hn::NegMulAdd(hn::Set(d, how.learning_rate), m, weight), d, master);
}

void sgd_run(const Sgd& how, float scale, float* master, const float* gradient, float* momentum,
             std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    sgd_at(d, how, scale, master + i, gradient + i, momentum + i);
  for (; i < count; ++i) sgd_at(one, how, scale, master + i, gradient + i, momentum + i);
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(adam_run);
HWY_EXPORT(sgd_run);

namespace {

// The master weights of a block, joined if they are split. One at a time on each thread.
class MasterBlock {
 public:
  MasterBlock(const Parameters& parameters, Block block) : parameters_(parameters), block_(block) {
    if (parameters.lower.empty()) {
      values_ = parameters.master.subspan(block.first, block.count);
      return;
    }
    thread_local std::vector<float> memory;
    memory.resize(kBlockElements);
    values_ = std::span(memory).first(block.count);
    join(upper(), lower(), values_);
  }

  // To where the model reads them.
  void write_back() const {
    if (!parameters_.lower.empty()) return split(values_, upper(), lower());
    if (parameters_.working == nullptr) return;
    from_floats(values_, parameters_.working + block_.first * size_of(parameters_.working_dtype),
                parameters_.working_dtype);
  }

  float* data() const { return values_.data(); }

 private:
  std::span<std::uint16_t> upper() const {
    return {reinterpret_cast<std::uint16_t*>(parameters_.working) + block_.first, block_.count};
  }
  std::span<std::uint16_t> lower() const { return parameters_.lower.subspan(block_.first, block_.count); }

  const Parameters& parameters_;
  Block block_;
  std::span<float> values_;
};

void check_sizes(const Parameters& parameters) {
  const std::size_t count = parameters.gradient.size();
  if (parameters.lower.empty()) {
    LOCKSTEP_CHECK(parameters.master.size() == count);
  } else {
    LOCKSTEP_CHECK(parameters.lower.size() == count && parameters.working != nullptr &&
                   parameters.working_dtype == DType::bf16);
  }
}

}  // namespace

AdamFactors factors_of(const AdamW& how, float gradient_scale) {
  LOCKSTEP_CHECK(how.step >= 1, "steps count from 1");
  const auto step = static_cast<double>(how.step);
  return {.gradient_scale = gradient_scale,
          .new_mean = static_cast<float>(1.0 - how.beta1),
          .new_square = static_cast<float>(1.0 - how.beta2),
          .rate = static_cast<float>(how.learning_rate / (1.0 - std::pow(double{how.beta1}, step))),
          .square_correction = static_cast<float>(1.0 / (1.0 - std::pow(double{how.beta2}, step))),
          .epsilon = how.epsilon,
          .keep = static_cast<float>(1.0 - double{how.learning_rate} * how.weight_decay)};
}

void adamw(const AdamW& how, const Parameters& parameters, std::span<float> mean, std::span<float> square) {
  const std::size_t count = parameters.gradient.size();
  check_sizes(parameters);
  LOCKSTEP_CHECK(mean.size() == count && square.size() == count);
  const AdamFactors factors = factors_of(how, parameters.gradient_scale);
  for_each_block(count, [&](Block block) {
    const MasterBlock master(parameters, block);
    HWY_DYNAMIC_DISPATCH(adam_run)
    (factors, master.data(), parameters.gradient.data() + block.first, mean.data() + block.first,
     square.data() + block.first, block.count);
    master.write_back();
  });
}

void sgd(const Sgd& how, const Parameters& parameters, std::span<float> momentum) {
  const std::size_t count = parameters.gradient.size();
  check_sizes(parameters);
  LOCKSTEP_CHECK(momentum.size() == count);
  for_each_block(count, [&](Block block) {
    const MasterBlock master(parameters, block);
    HWY_DYNAMIC_DISPATCH(sgd_run)
    (how, parameters.gradient_scale, master.data(), parameters.gradient.data() + block.first,
     momentum.data() + block.first, block.count);
    master.write_back();
  });
}

}  // namespace lockstep::kernels
#endif
