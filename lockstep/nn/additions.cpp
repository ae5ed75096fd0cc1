// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/additions.h"

#include <iterator>
#include <utility>

namespace lockstep::nn {
namespace {

// What the passes of this thread leave their additions in; null: they add at once.
Additions*& later_of_this_thread() {
  thread_local Additions* later = nullptr;
  return later;
}

}  // namespace

void Additions::append(Additions&& other) {
  std::vector<std::function<void()>> theirs = std::exchange(other.additions_, {});
  additions_.insert(additions_.end(), std::make_move_iterator(theirs.begin()),
                    std::make_move_iterator(theirs.end()));
}

void Additions::run() {
  for (std::function<void()>& addition : additions_) std::exchange(addition, nullptr)();
  additions_.clear();
}

PutOff::PutOff(Additions& later) : outer_(std::exchange(later_of_this_thread(), &later)) {}

PutOff::~PutOff() {
  later_of_this_thread() = outer_;
}

void add_to_gradients(std::function<void()> addition, Additions* after) {
  if (Additions* later = later_of_this_thread()) return later->put_off(std::move(addition));
  if (after != nullptr) return after->put_off(std::move(addition));
  addition();
}

}  // namespace lockstep::nn
