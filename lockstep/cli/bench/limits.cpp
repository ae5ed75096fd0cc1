// SPDX-License-Identifier: Apache-2.0
//
// What bounds a collective: copying in memory, a link between two ranks, and adding.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/memory.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/bench/system.h"
#include "lockstep/cli/bench/values.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/transport/memory/copy.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;

// Enough for one that nothing else on the machine disturbs.
constexpr int kTries = 10;

// The least of all tries, in seconds.
template <typename Function>
double quickest(Function function) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point begin = Clock::now();
    function();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

// Between registered buffers, whose pages are those that collectives work on, and past the caches where that
// is quicker: the limit is what the memory can do, not what one way of copying makes of it.
class CopyTrial : public Trial {
 public:
  CopyTrial(Communicator communicator, const Case& what)
      : communicator_(std::move(communicator)),
        bytes_(memory_limit_bytes(what.op, what.bytes, communicator_.size())),
        from_(communicator_.allocate(std::max<std::size_t>(bytes_, 1))),
        to_(communicator_.allocate(std::max<std::size_t>(bytes_, 1))) {
    fill();
    const double through_caches = quickest([this] { copy_through_caches(); });
    streaming_ = quickest([this] { copy_past_caches(); }) < through_caches;
  }

  void fill() override {
    fill_values(from_.bytes(), DType::uint8, communicator_.rank(), {0, bytes_});
    std::memset(to_.bytes().data(), 0, bytes_);
  }
  bool is_correct() const override {
    return holds_values(to_.bytes(), DType::uint8, communicator_.rank(), {0, bytes_}, 0);
  }
  void clear() override {}
  void run_once() override { streaming_ ? copy_past_caches() : copy_through_caches(); }
  void meet() override { communicator_.barrier(); }

 private:
  void copy_past_caches() { transport::copy_streaming(to_.bytes().data(), from_.bytes().first(bytes_)); }
  void copy_through_caches() {
    std::memcpy(to_.bytes().data(), from_.bytes().data(), bytes_);
    // The copy must happen although nobody reads it.
    asm volatile("" : : "r"(to_.bytes().data()) : "memory");
  }

  Communicator communicator_;
  std::size_t bytes_;
  comm::Buffer from_;
  comm::Buffer to_;
  bool streaming_ = false;
};

class AddTrial : public Trial {
 public:
  AddTrial(Communicator communicator, const Case& what)
      : communicator_(std::move(communicator)), dtype_(what.dtype), sum_(what.bytes), other_(what.bytes) {}

  void fill() override {
    fill_values(sum_.bytes(), dtype_, 0, all());
    fill_values(other_.bytes(), dtype_, 1, all());
  }
  bool is_correct() const override { return holds_sum(sum_.bytes(), dtype_, 2, all(), Comparison::bits); }
  void clear() override {
    std::memset(sum_.bytes().data(), 0, sum_.bytes().size());
    std::memset(other_.bytes().data(), 0, other_.bytes().size());
  }
  void run_once() override {
    const std::array<kernels::Operand, 2> operands = {{{sum_.bytes().data(), 0}, {other_.bytes().data(), 1}}};
    const std::array<std::byte*, 1> destinations = {sum_.bytes().data()};
    kernels::combine({.dtype = dtype_}, operands, destinations, all().size());
  }
  void meet() override { communicator_.barrier(); }

 private:
  Range all() const { return {0, sum_.bytes().size() / size_of(dtype_)}; }

  Communicator communicator_;
  DType dtype_;
  PlainMemory sum_;
  PlainMemory other_;
};

// Messages from rank 0 to rank 1; with `echo` in turns there and back.
class MessageTrial : public Trial {
 public:
  MessageTrial(Communicator communicator, const Case& what, bool echo)
      : communicator_(std::move(communicator)),
        buffer_(communicator_.allocate(what.bytes)),
        options_{.dtype = DType::uint8},
        echo_(echo) {}

  void fill() override {
    turn_ = 0;
    std::memset(buffer_.bytes().data(), 0, buffer_.bytes().size());
    if (communicator_.rank() == 0) fill_values(buffer_.bytes(), DType::uint8, 0, all());
  }
  bool is_correct() const override {
    return communicator_.rank() > 1 || holds_values(buffer_.bytes(), DType::uint8, 0, all(), 0);
  }
  void clear() override {}
  void run_once() override {
    const Rank sender = echo_ ? static_cast<Rank>(turn_++ % 2) : 0;
    if (communicator_.rank() == sender) communicator_.send(1 - sender, buffer_.bytes(), options_);
    if (communicator_.rank() == 1 - sender) communicator_.recv(sender, buffer_.bytes(), options_);
  }
  void meet() override { communicator_.barrier(); }

 private:
  Range all() const { return {0, buffer_.bytes().size()}; }

  Communicator communicator_;
  comm::Buffer buffer_;
  comm::Options options_;
  bool echo_;
  std::uint64_t turn_ = 0;
};

}  // namespace

TrialFactory memcpy_trials(Communicator communicator) {
  return [communicator = std::move(communicator)](const Case& what) -> std::unique_ptr<Trial> {
    return std::make_unique<CopyTrial>(communicator, what);
  };
}

TrialFactory link_trials(Communicator communicator) {
  return [communicator = std::move(communicator)](const Case& what) -> std::unique_ptr<Trial> {
    if (what.system == "add") return std::make_unique<AddTrial>(communicator, what);
    if (communicator.size() < 2) throw UsageError(fmt::format("{} needs at least 2 ranks", what.system));
    return std::make_unique<MessageTrial>(communicator, what, what.system == "ping");
  };
}

}  // namespace lockstep::cli
