// SPDX-License-Identifier: Apache-2.0
//
// What only a program can meet, beside the errors of base/error.h; exit_codes.cpp gives each its code.
#pragma once

#include "lockstep/base/error.h"

namespace lockstep::cli {

// A signal asked the program to end.
class Interrupted : public Error {
 public:
  explicit Interrupted(int number);

  int number() const { return number_; }

 private:
  int number_;
};

// What the program had to say could not be written.
class OutputError : public Error {
 public:
  using Error::Error;
};

}  // namespace lockstep::cli
