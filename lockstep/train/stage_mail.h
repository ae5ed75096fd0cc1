// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/schedule/pipeline/message.h"
#include "lockstep/train/buffer_pool.h"

namespace lockstep::train {

// What the stages of a pipeline send each other in a step: activations and their gradients, all of one shape.
// They are received into registered memory, and asked for before they are needed: whoever sends rarely waits.
class StageMail {
 public:
  StageMail(const comm::Communicator& pipeline, std::vector<std::int64_t> sizes, at::ScalarType type);
  StageMail(const StageMail&) = delete;
  StageMail& operator=(const StageMail&) = delete;
  // Cancels what is still under way, as when an exception ends a step: nothing is sent from memory that goes.
  // The other stages get Aborted then.
  ~StageMail();

  // What this rank will receive until the next call, in the order in which it will take them.
  void expect(std::vector<schedule::PipelineMessage> messages);

  // Waits for the next one of its kind, which is the message. The tensor's memory is used again once nobody
  // refers to it.
  at::Tensor receive(const schedule::PipelineMessage& message);

  // Returns at once; the tensor is kept until it is sent.
  void send(const schedule::PipelineMessage& message, const at::Tensor& tensor);

  // Waits until everything is sent.
  void finish();

 private:
  struct Incoming {
    schedule::PipelineMessage message;
    at::Tensor tensor;
    comm::Work work;
  };
  struct Outgoing {
    at::Tensor tensor;
    comm::Work work;
  };
  struct Queue {
    std::deque<schedule::PipelineMessage> expected;  // not yet asked for
    std::deque<Incoming> asked;
  };

  Queue& queue_of(const schedule::PipelineMessage& message) {
    return queues_[static_cast<std::size_t>(message.payload)];
  }
  void ask(Queue& queue);
  at::Tensor take_memory();

  comm::Communicator pipeline_;
  std::vector<std::int64_t> sizes_;
  at::ScalarType type_;
  std::shared_ptr<BufferPool> pool_;  // shared with the tensors in its memory
  std::array<Queue, 2> queues_;       // by payload
  std::deque<Outgoing> sent_;
};

}  // namespace lockstep::train
