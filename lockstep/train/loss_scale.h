// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// What the loss is multiplied by so that gradients in fp16 do not vanish. It grows after `window` good steps
// in a row and is halved by a step whose gradients were not finite. Always 1 in fp32 and bf16.
class LossScale {
 public:
  explicit LossScale(const spec::Training& training)
      : dynamic_(training.dtype == DType::fp16 && training.loss_scale == 0.0),
        window_(training.loss_scale_window),
        least_(training.min_loss_scale),
        value_(training.dtype != DType::fp16 ? 1.0
               : dynamic_                    ? training.initial_loss_scale
                                             : training.loss_scale) {}

  double value() const { return value_; }
  std::int64_t good_steps() const { return good_steps_; }  // since it has changed
  // A step whose gradients are not finite is answered by a smaller one.
  bool can_fall() const { return dynamic_ && value_ > least_; }
  // As it was when it had these.
  void restore(double value, std::int64_t good_steps) {
    if (!dynamic_) return;
    value_ = value;
    good_steps_ = good_steps;
  }

  void record(bool finite) {
    if (!dynamic_) return;
    good_steps_ = finite ? good_steps_ + 1 : 0;
    if (!finite) value_ = std::max(least_, value_ / 2);
    if (good_steps_ == window_) {
      good_steps_ = 0;
      value_ *= 2;
    }
  }

 private:
  bool dynamic_;
  std::int64_t window_;
  double least_;
  double value_;
  std::int64_t good_steps_ = 0;
};

}  // namespace lockstep::train
