// SPDX-License-Identifier: Apache-2.0
//
// The few things that this transport asks of MPI, in our own words, so that mpi.h is included by one source
// file. That file is wire.cpp, or absent.cpp in a build without MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"

namespace lockstep::transport::mpi {

inline constexpr Rank kAnyRank = -1;

// A send or receive that was started. Its memory belongs to MPI until test() says that it has ended.
struct Transfer {
  std::uintptr_t request = 0;  // holds an MPI_Request
};

enum class State : std::uint8_t { pending, done, failed };

struct Outcome {
  State state = State::pending;
  Rank from = kAnyRank;   // of a receive that is done
  std::size_t bytes = 0;  // of a receive that is done
};

// A private copy of MPI_COMM_WORLD. Messages between two ranks with equal tags are matched in order. No call
// blocks. Not thread-safe.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual Rank rank() const = 0;
  virtual int world() const = 0;
  virtual bool shares_host(Rank rank) const = 0;

  // Done when the receiver has taken the message.
  virtual Transfer send(Rank to, int tag, ConstBytes message) = 0;
  virtual Transfer receive(Rank from, int tag, Bytes into) = 0;

  // After done or failed the transfer is over and must not be tested again.
  virtual Outcome test(Transfer& transfer) = 0;

  // Asks for the early end of a transfer; test() still tells when it is over.
  virtual void cancel(Transfer& transfer) = 0;

  // True once every rank has begun to call it; to be repeated until then.
  virtual bool leave() = 0;

  // Gives MPI up (and finalizes it if this wire initialized it), after leave() was true and all transfers
  // ended.
  virtual void finish() = 0;
};

// Was this build made with MPI?
bool wire_available();

// Initializes MPI if nobody has. Every rank of MPI_COMM_WORLD must call it; Timeout otherwise. UsageError
// when the build has no MPI, MPI was finalized already, or its thread level is below MPI_THREAD_SERIALIZED.
std::unique_ptr<Wire> open_wire(Deadline deadline);

}  // namespace lockstep::transport::mpi
