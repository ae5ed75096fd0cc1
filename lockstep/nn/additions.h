// SPDX-License-Identifier: Apache-2.0
//
// Additions to the gradients of parameters that are put off: a pipeline fills its idle time with the weights'
// half of a backward pass.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::nn {

// What was put off, with the tensors that it needs.
class Additions {
 public:
  void put_off(std::function<void()> addition) { additions_.push_back(std::move(addition)); }
  // Takes over what the other has, behind its own.
  void append(Additions&& other);
  // In the order in which they came; then none is left.
  void run();
  bool empty() const { return additions_.empty(); }

 private:
  std::vector<std::function<void()>> additions_;
};

// While it lives, the backward passes that this thread runs leave their additions in `later`: those of
// linear() and embedding(), and of everything that goes through tracked(). Norms add at once, because their
// two gradients come from one pass over the data. Passes on other devices, which autograd runs on its own
// threads, add at once as well.
class PutOff {
 public:
  explicit PutOff(Additions& later);
  PutOff(const PutOff&) = delete;
  PutOff& operator=(const PutOff&) = delete;
  ~PutOff();

 private:
  Additions* outer_;
};

// Runs the addition, or puts it off: as PutOff says, otherwise into `after` if that is given. For the
// backward half of autograd functions.
void add_to_gradients(std::function<void()> addition, Additions* after = nullptr);

}  // namespace lockstep::nn
