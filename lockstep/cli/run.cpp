// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/run.h"

#include <exception>
#include <iostream>

#include "lockstep/base/failpoint.h"
#include "lockstep/cli/command_line.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"

namespace lockstep::cli {

int run(const std::vector<std::string>& arguments) {
  try {
    failpoint::arm_from_environment();
    const CommandLine line(arguments);
    if (!line.answer().empty()) {
      print(std::cout, line.answer());
      return kDone;
    }
    if (!line.has_action()) {
      std::cerr << line.help();
      return kBadUsage;
    }
    return line.act();
  } catch (...) {
    const Verdict verdict = verdict_on(std::current_exception());
    if (!verdict.sentence.empty()) std::cerr << "lockstep: " << verdict.sentence << "\n";
    return verdict.code;
  }
}

}  // namespace lockstep::cli
