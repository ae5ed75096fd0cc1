// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace lockstep::cli {

// What somebody has typed behind the name of the program, understood. Nothing is done before act().
class CommandLine {
 public:
  // UsageError, in one sentence, for what makes no sense.
  explicit CommandLine(const std::vector<std::string>& arguments);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Help or the version, when that is asked for; else empty.
  const std::string& answer() const;
  // False when no command was given.
  bool has_action() const;
  // Returns the exit code; errors as exceptions.
  int act() const;
  // Of the whole program.
  std::string help() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::cli
