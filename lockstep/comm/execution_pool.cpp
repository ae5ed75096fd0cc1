// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/execution_pool.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "lockstep/base/dtype.h"

namespace lockstep::comm {

std::unique_ptr<Execution> ExecutionPool::take_idle() {
  // Coming back must need no memory: whoever comes back may have failed for want of it.
  const std::size_t all = idle_.size() + lent_ + 1;
  if (idle_.capacity() < all) idle_.reserve(2 * all);
  if (idle_.empty()) idle_.push_back(std::make_unique<Execution>());
  std::unique_ptr<Execution> execution = std::move(idle_.back());
  idle_.pop_back();
  ++lent_;
  return execution;
}

void ExecutionPool::put_back(std::unique_ptr<Execution> execution) {
  --lent_;
  idle_.push_back(std::move(execution));
}

void ExecutionPool::lend(Operation& operation) {
  std::unique_ptr<Execution> execution = take_idle();
  Binding& binding = execution->binding;
  binding.scratch.clear();
  try {
    bind(operation, *execution);
  } catch (const std::exception&) {
    for (Bytes memory : binding.scratch) scratch_.give_back(memory);
    put_back(std::move(execution));
    throw;
  }
  operation.execution = std::move(execution);
}

void ExecutionPool::bind(const Operation& operation, Execution& execution) {
  Binding& binding = execution.binding;
  const schedule::Program& program = operation.script->program();
  binding.script = operation.script;
  binding.ports = operation.ports;
  binding.envelope = {
      .contract = operation.digest,
      .sequence = operation.point_to_point ? message_word(operation.contract) : operation.sequence};
  binding.arithmetic = operation.arithmetic;
  binding.buffers.reserve(program.buffer_elements.size());
  binding.buffers.assign(operation.buffers.begin(), operation.buffers.end());
  binding.spills.clear();
  const std::vector<std::size_t>& spills = operation.script->spill_elements();
  binding.spills.reserve(spills.size());
  binding.scratch.reserve(program.buffer_elements.size() - program.scratch_from + spills.size());
  execution.start();
  const auto take = [&](std::size_t elements) {
    binding.scratch.push_back(scratch_.take(elements * size_of(operation.arithmetic.dtype)));
    return binding.scratch.back().data();
  };
  for (std::size_t i = program.scratch_from; i < program.buffer_elements.size(); ++i) {
    binding.buffers.push_back(take(program.buffer_elements[i]));
  }
  for (const std::size_t elements : spills) binding.spills.push_back(take(elements));
}

void ExecutionPool::take_back(Operation& operation) {
  for (Bytes memory : operation.execution->binding.scratch) scratch_.give_back(memory);
  take_back_failed(operation);
}

void ExecutionPool::take_back_failed(Operation& operation) {
  if (!operation.execution) return;
  operation.execution->release();
  put_back(std::move(operation.execution));
}

void ExecutionPool::quarantine(const Operation& operation) {
  const std::vector<std::size_t>& elements = operation.script->program().buffer_elements;
  const std::vector<std::byte*>& buffers = operation.execution->binding.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    quarantine(Bytes{buffers[i], elements[i] * size_of(operation.contract.dtype)});
  }
}

void ExecutionPool::quarantine(Bytes memory) {
  try {
    quarantined_.push_back(memory);
  } catch (const std::bad_alloc&) {
    all_is_quarantined_ = true;
  }
}

bool ExecutionPool::is_quarantined(Bytes memory) const {
  return all_is_quarantined_ || std::any_of(quarantined_.begin(), quarantined_.end(),
                                            [memory](Bytes granted) { return overlap(granted, memory); });
}

}  // namespace lockstep::comm
