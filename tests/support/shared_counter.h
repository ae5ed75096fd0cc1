// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "lockstep/comm/communicator.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/memory/mapping.h"

namespace lockstep::test {

// A number that all ranks of a world on this host share, whether they are threads or processes; it begins
// with 0. It says what has happened anywhere without a message that could order anything.
class SharedCounter {
 public:
  // Collective. That of rank 0 must not go before all have been made.
  explicit SharedCounter(const comm::Communicator& world);

  void add_one() { word().fetch_add(1); }
  std::uint64_t value() const { return word().load(); }

 private:
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free);
  Word& word() const { return memory_.as<Word>(); }

  transport::Descriptor file_;
  transport::Mapping memory_;
};

}  // namespace lockstep::test
