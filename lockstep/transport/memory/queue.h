// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::transport {

// First in, first out; allocates only when it holds more than ever before.
template <typename T>
class Queue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }

  void push(T value) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = std::move(value);
    ++size_;
  }
  void pop() {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[(head_ + i) & (slots_.size() - 1)]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two of them, or none
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lockstep::transport
