// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

namespace lockstep::test {

// Sets or clears (null) a variable of the environment, and puts it back.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) {
      had_value_ = true;
      before_ = before;
    }
    set(value);
  }
  ~ScopedVariable() { set(had_value_ ? before_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) {
      ::setenv(name_.c_str(), value, 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  std::string name_;
  bool had_value_ = false;
  std::string before_;
};

}  // namespace lockstep::test
