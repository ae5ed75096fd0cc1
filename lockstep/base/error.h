// SPDX-License-Identifier: Apache-2.0
//
// The kinds of error, each with one place that catches it (docs/errors.md):
//   UsageError     the user's flag, file, environment or argument   cli/, exit 2
//   DataError      a corrupt or hostile file or message             cli/, exit 65
//   InternalError  a bug of ours, thrown by LOCKSTEP_CHECK          cli/, exit 70
//   InUseError     another process writes there (file_lock.h)       cli/, exit 73
//   CommError      communication failed; see the kinds below        train/ where it is elastic, else cli/,
//   exit 75
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockstep/base/rank.h"

namespace lockstep {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One sentence: what is wrong, where, and what to do about it.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Names the file or peer, the offset, what was expected and what was found.
class DataError : public Error {
 public:
  using Error::Error;
};

class InternalError : public Error {
 public:
  using Error::Error;
};

class CommError : public Error {
 public:
  using Error::Error;
};

// Where an operation stood when it failed; every communication error is worded from this. What is zero of the
// progress and the wait is unknown, or there was none: the words leave it out.
struct CommFailure {
  std::string operation;       // "all_reduce"
  std::uint64_t sequence = 0;  // position among the operations of the group
  std::string group;           // "world", "pipeline"
  Rank peer = -1;              // rank in the world, not in that group
  std::size_t done_bytes = 0;  // of what this rank was waiting for
  std::size_t total_bytes = 0;
  std::chrono::nanoseconds waited{0};
};

// The peer's process is gone or its connection closed: "all_reduce #118 on data: rank 3 is gone (its process
// ended or its connection closed) after 4096 of 65536 bytes and 0.3 s of waiting".
class PeerLost : public CommError {
 public:
  explicit PeerLost(const CommFailure& failure);
  using CommError::CommError;
};

// The deadline passed: "all_reduce #118 on data: rank 3 silent for 30.0 s after 4096 of 65536 bytes".
class Timeout : public CommError {
 public:
  explicit Timeout(const CommFailure& failure);
  using CommError::CommError;
};

// The operation was cancelled here, failed on another rank, or the group failed earlier.
class Aborted : public CommError {
 public:
  using CommError::CommError;
};

// Two ranks disagree about an operation; names both sides.
class ContractMismatch : public CommError {
 public:
  using CommError::CommError;
};

// A peer did not prove that it knows the secret, or is of another run or generation.
class AuthenticationError : public CommError {
 public:
  using CommError::CommError;
};

// Throws InternalError. The builtins name the caller, like std::source_location, which clang has only
// since 16.
[[noreturn]] void check_failed(const char* condition, const std::string& message,
                               const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace lockstep

// For what only a bug of ours can break; stays on in release builds. The message may be left out.
#define LOCKSTEP_CHECK(condition, ...)                                  \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::lockstep::check_failed(#condition, ::std::string(__VA_ARGS__)); \
    }                                                                   \
  } while (false)
