// SPDX-License-Identifier: Apache-2.0
//
// What only a program can meet, beside the errors of base/error.h; exit_codes.cpp gives each its code.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::cli {

// A signal asked the program to end.
class Interrupted : public Error {
 public:
  // With what that leaves, if there is anything to say.
  explicit Interrupted(int number, const std::string& what_remains = "");

  int number() const { return number_; }

 private:
  int number_;
};

// A process that the program has started failed, and has told why unless there is a sentence.
class WorkerFailed : public Error {
 public:
  WorkerFailed(int exit_code, const std::string& sentence) : Error(sentence), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// What the program had to say could not be written.
class OutputError : public Error {
 public:
  using Error::Error;
};

}  // namespace lockstep::cli
