// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/cli/errors.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kNoMemory =
    "not enough memory: free some, ask for less (fewer ranks, smaller buffers), or raise the limits (ulimit "
    "-v, "
    "ulimit -u, control group)";

std::string one_line(std::string_view text) {
  std::string line;
  for (char c : text) line += c == '\n' ? ' ' : c;
  return line;
}

}  // namespace

Verdict verdict_on(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted& raised) {
    return {kSignalBase + raised.number(), raised.what()};
  } catch (const WorkerFailed& raised) {
    return {raised.exit_code(), raised.what()};
  } catch (const OutputError& raised) {
    return {kOutputLost, one_line(raised.what())};
  } catch (const InternalError& raised) {
    return {kInternal, one_line(raised.what())};
  } catch (const std::exception& raised) {
    const int code = exit_code_of(raised);
    if (is_lack_of_memory(raised)) return {code, std::string(kNoMemory)};
    if (code != kInternal) return {code, one_line(raised.what())};
    return {code, "internal error: " + one_line(raised.what()) + "; please report this"};
  } catch (...) {
    return {kInternal, "internal error of an unknown kind; please report this"};
  }
}

}  // namespace lockstep::cli
