// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_trace.h"

#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/train/phases.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kMostEvents = 1'000'000;

// Of rank 0, by the clock that hosts share as well as they are set alike.
Clock::time_point common_start(const comm::Communicator& world) {
  using Wall = std::chrono::system_clock;
  const Clock::time_point here = Clock::now();
  const std::int64_t now = std::chrono::nanoseconds(Wall::now().time_since_epoch()).count();
  std::int64_t start = now;
  world.broadcast(as_writable_bytes_of(start), {.dtype = DType::int64});
  return here - std::chrono::nanoseconds(now - start);
}

std::string_view category_of(schedule::Act act) {
  return phase_of(act) == Phase::communication ? "communication" : "compute";
}

std::string label_of(const schedule::Action& action) {
  std::string label(schedule::name_of(action.act));
  if (action.block >= 0) label += fmt::format(" block {}", action.block);
  if (action.bucket >= 0) label += fmt::format(" bucket {}", action.bucket);
  if (action.lane >= 0) label += fmt::format(", lane {}", action.lane);
  if (action.micro_batch >= 0) label += fmt::format(", micro-batch {}", action.micro_batch);
  return label;
}

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

StepTrace::StepTrace(std::filesystem::path folder, const comm::Communicator& world)
    : file_(std::move(folder) / fmt::format("rank_{}.json", world.rank())),
      trace_(world.rank(), kMostEvents),
      start_(common_start(world)) {}

void StepTrace::add(const schedule::Action& action, Clock::time_point began, Clock::time_point ended) {
  trace_.add({.name = label_of(action),
              .category = std::string(category_of(action.act)),
              .begin_us = microseconds(began - start_),
              .duration_us = microseconds(ended - began),
              .thread = 0});
}

void StepTrace::write() const {
  trace_.write(file_);
}

}  // namespace lockstep::train
