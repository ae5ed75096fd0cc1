// SPDX-License-Identifier: Apache-2.0
//
// What bounds a collective: copying in memory, a link between two ranks, and adding.
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench_memory.h"
#include "lockstep/cli/bench_statistics.h"
#include "lockstep/cli/bench_system.h"
#include "lockstep/cli/bench_values.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;

class CopyTrial : public Trial {
 public:
  CopyTrial(Communicator communicator, const Case& what)
      : communicator_(std::move(communicator)),
        from_(memory_limit_bytes(what.op, what.bytes, communicator_.size())),
        to_(from_.bytes().size()) {}

  void fill() override {
    fill_values(from_.bytes(), DType::uint8, communicator_.rank(), {0, from_.bytes().size()});
  }
  bool is_correct() const override {
    return holds_values(to_.bytes(), DType::uint8, communicator_.rank(), {0, to_.bytes().size()}, 0);
  }
  void clear() override {}
  void run_once() override {
    std::memcpy(to_.bytes().data(), from_.bytes().data(), to_.bytes().size());
    // The copy must happen although nobody reads it.
    asm volatile("" : : "r"(to_.bytes().data()) : "memory");
  }
  void meet() override { communicator_.barrier(); }

 private:
  Communicator communicator_;
  PlainMemory from_;
  PlainMemory to_;
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
    if (communicator_.rank() == 0) fill_values(buffer_.bytes(), DType::uint8, 0, all());
  }
  bool is_correct() const override {
    return communicator_.rank() > 1 || holds_values(buffer_.bytes(), DType::uint8, 0, all(), 0);
  }
  void clear() override { turn_ = 0; }
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
