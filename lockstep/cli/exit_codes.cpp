// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <new>
#include <string_view>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"
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
  } catch (const UsageError& raised) {
    return {kBadUsage, one_line(raised.what())};
  } catch (const InUseError& raised) {
    return {kInUse, one_line(raised.what())};
  } catch (const DataError& raised) {
    return {kBadData, one_line(raised.what())};
  } catch (const CommError& raised) {
    return {kInterrupted, one_line(raised.what())};
  } catch (const Interrupted& raised) {
    return {kSignalBase + raised.number(), raised.what()};
  } catch (const WorkerFailed& raised) {
    return {raised.exit_code(), raised.what()};
  } catch (const OutputError& raised) {
    return {kOutputLost, one_line(raised.what())};
  } catch (const InternalError& raised) {
    return {kInternal, one_line(raised.what())};
  } catch (const std::bad_alloc&) {
    return {kBadUsage, std::string(kNoMemory)};
  } catch (const std::system_error& raised) {
    // This is how a thread that cannot be started is reported.
    const bool is_short = raised.code() == std::errc::resource_unavailable_try_again ||
                          raised.code() == std::errc::not_enough_memory;
    if (is_short) return {kBadUsage, std::string(kNoMemory)};
    return {kInternal, "internal error: " + one_line(raised.what()) + "; please report this"};
  } catch (const std::exception& raised) {
    // libtorch has no error of its own for this.
    if (std::string_view(raised.what()).find("allocate memory") != std::string_view::npos) {
      return {kBadUsage, std::string(kNoMemory)};
    }
    return {kInternal, "internal error: " + one_line(raised.what()) + "; please report this"};
  } catch (...) {
    return {kInternal, "internal error of an unknown kind; please report this"};
  }
}

}  // namespace lockstep::cli
