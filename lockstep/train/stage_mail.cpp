// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/stage_mail.h"

#include <utility>

#include <ATen/ops/from_blob.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {
namespace {

// How many messages of a kind are asked for ahead: one that arrives while the one before it is computed with.
constexpr std::size_t kAhead = 2;

comm::Options stream_of(const schedule::PipelineMessage& message, DType dtype) {
  return {.dtype = dtype, .stream = static_cast<std::uint32_t>(message.payload)};
}

Bytes bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

StageMail::StageMail(const comm::Communicator& pipeline, std::vector<std::int64_t> sizes, at::ScalarType type)
    : pipeline_(pipeline),
      sizes_(std::move(sizes)),
      type_(type),
      pool_(std::make_shared<BufferPool>(pipeline)) {}

StageMail::~StageMail() {
  for (Outgoing& outgoing : sent_) outgoing.work.cancel();
  for (Queue& queue : queues_) {
    for (Incoming& incoming : queue.asked) incoming.work.cancel();
  }
}

void StageMail::expect(std::vector<schedule::PipelineMessage> messages) {
  for (const Queue& queue : queues_) {
    LOCKSTEP_CHECK(queue.expected.empty() && queue.asked.empty(), "a message of the last step was not taken");
  }
  for (const schedule::PipelineMessage& message : messages) queue_of(message).expected.push_back(message);
  for (Queue& queue : queues_) {
    for (std::size_t i = 0; i < kAhead; ++i) ask(queue);
  }
}

void StageMail::ask(Queue& queue) {
  if (queue.expected.empty()) return;
  const schedule::PipelineMessage message = queue.expected.front();
  queue.expected.pop_front();
  const at::Tensor tensor = take_memory();
  comm::Work work =
      pipeline_.recv_async(message.from, bytes_of(tensor), stream_of(message, nn::dtype_of(tensor)));
  queue.asked.push_back({message, tensor, std::move(work)});
}

at::Tensor StageMail::take_memory() {
  std::size_t bytes = c10::elementSize(type_);
  for (const std::int64_t size : sizes_) bytes *= static_cast<std::size_t>(size);
  const auto buffer = std::make_shared<comm::Buffer>(pool_->take(bytes));
  void* const data = buffer->bytes().data();
  return at::from_blob(
      data, sizes_, [pool = pool_, buffer](void*) { pool->give_back(std::move(*buffer)); }, type_);
}

at::Tensor StageMail::receive(const schedule::PipelineMessage& message) {
  Queue& queue = queue_of(message);
  LOCKSTEP_CHECK(!queue.asked.empty() && queue.asked.front().message == message,
                 "a message is taken out of its order");
  Incoming next = std::move(queue.asked.front());
  queue.asked.pop_front();
  ask(queue);
  next.work.wait();
  return next.tensor;
}

void StageMail::send(const schedule::PipelineMessage& message, const at::Tensor& tensor) {
  // Not test(): those that have not ended may take as long as their receivers compute.
  while (!sent_.empty() && sent_.front().work.has_ended()) {
    sent_.front().work.wait();
    sent_.pop_front();
  }
  const at::Tensor dense = tensor.contiguous();
  LOCKSTEP_CHECK(dense.sizes() == at::IntArrayRef(sizes_) && dense.scalar_type() == type_,
                 "what stages send each other has another shape");
  sent_.push_back(
      {dense, pipeline_.send_async(message.to, bytes_of(dense), stream_of(message, nn::dtype_of(dense)))});
}

void StageMail::finish() {
  for (Outgoing& outgoing : sent_) outgoing.work.wait();
  sent_.clear();
}

}  // namespace lockstep::train
