// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/execution_pool.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "lockstep/base/dtype.h"

namespace lockstep::comm {

void ExecutionPool::lend(Operation& operation) {
  if (idle_.empty()) idle_.push_back(std::make_unique<Execution>());
  operation.execution = std::move(idle_.back());
  idle_.pop_back();
  Binding& binding = operation.execution->binding;
  binding.script = operation.script;
  binding.ports = operation.ports;
  binding.envelope = {.contract = operation.digest, .sequence = operation.sequence};
  binding.arithmetic = operation.arithmetic;
  binding.buffers.assign(operation.buffers.begin(), operation.buffers.end());
  binding.scratch.clear();
  operation.execution->start();
  const schedule::Program& program = operation.script->program();
  try {
    for (std::size_t i = program.scratch_from; i < program.buffer_elements.size(); ++i) {
      binding.scratch.push_back(
          scratch_.take(program.buffer_elements[i] * size_of(operation.arithmetic.dtype)));
      binding.buffers.push_back(binding.scratch.back().data());
    }
  } catch (const std::exception&) {
    for (Bytes memory : binding.scratch) scratch_.give_back(memory);
    idle_.push_back(std::move(operation.execution));
    throw;
  }
}

void ExecutionPool::take_back(Operation& operation) {
  for (Bytes memory : operation.execution->binding.scratch) scratch_.give_back(memory);
  take_back_failed(operation);
}

void ExecutionPool::take_back_failed(Operation& operation) {
  if (!operation.execution) return;
  operation.execution->release();
  idle_.push_back(std::move(operation.execution));
}

void ExecutionPool::quarantine(const Operation& operation) {
  const std::vector<std::size_t>& elements = operation.script->program().buffer_elements;
  const std::vector<std::byte*>& buffers = operation.execution->binding.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    quarantined_.emplace_back(buffers[i], elements[i] * size_of(operation.contract.dtype));
  }
}

bool ExecutionPool::is_quarantined(Bytes memory) const {
  return std::any_of(quarantined_.begin(), quarantined_.end(),
                     [memory](Bytes granted) { return overlap(granted, memory); });
}

}  // namespace lockstep::comm
