// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::spec {
namespace {

constexpr double kWsdDecayRatio = 0.1;

std::int64_t decay_steps(const LrScheduler& scheduler, std::int64_t total_steps) {
  const std::int64_t left = std::max<std::int64_t>(0, total_steps - scheduler.warmup_steps);
  const bool wsd = scheduler.decay_type == DecayType::wsd;
  const double ratio = scheduler.decay_ratio > 0.0 ? scheduler.decay_ratio : (wsd ? kWsdDecayRatio : 1.0);
  return std::min<std::int64_t>(left, std::llround(ratio * static_cast<double>(total_steps)));
}

// From 1 to 0 as `progress` goes from 0 to 1.
double shape(DecayType type, double progress) {
  switch (type) {
    case DecayType::constant:
      return 1.0;
    case DecayType::linear:
    case DecayType::wsd:
      return 1.0 - progress;
    case DecayType::cosine:
      return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return 1.0;
}

}  // namespace

double lr_at(std::int64_t step, const LrScheduler& scheduler, const Optimizer& optimizer,
             std::int64_t total_steps) {
  if (step < scheduler.warmup_steps) {
    return optimizer.lr * static_cast<double>(step + 1) / static_cast<double>(scheduler.warmup_steps + 1);
  }
  const std::int64_t falling = decay_steps(scheduler, total_steps);
  const std::int64_t fallen = std::clamp<std::int64_t>(step - (total_steps - falling), 0, falling);
  if (fallen == 0) return optimizer.lr;
  const double high = shape(scheduler.decay_type, static_cast<double>(fallen) / static_cast<double>(falling));
  return optimizer.lr * (scheduler.min_lr_factor + (1.0 - scheduler.min_lr_factor) * high);
}

}  // namespace lockstep::spec
