// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/printable.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kNoMemory =
    "not enough memory: free some, ask for less (fewer ranks, smaller buffers), or raise the limits (ulimit "
    "-v, "
    "ulimit -u, control group)";

// Its own text names the call that failed; people need the paths and the reason.
std::string sentence_of(const std::filesystem::filesystem_error& error) {
  if (is_lack_of_memory(error)) return std::string(kNoMemory);
  if (error.path1().empty()) return error.what();
  const std::string second = error.path2().empty() ? "" : " and " + error.path2().string();
  return fmt::format("{}{}: {}", error.path1().string(), second, error.code().message());
}

Verdict raw_verdict_on(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted& raised) {
    return {kSignalBase + raised.number(), raised.what()};
  } catch (const WorkerFailed& raised) {
    return {raised.exit_code(), raised.what()};
  } catch (const OutputError& raised) {
    return {kOutputLost, raised.what()};
  } catch (const InternalError& raised) {
    return {kInternal, raised.what()};
  } catch (const std::filesystem::filesystem_error& raised) {
    return {exit_code_of(raised), sentence_of(raised)};
  } catch (const std::exception& raised) {
    const int code = exit_code_of(raised);
    if (is_lack_of_memory(raised)) return {code, std::string(kNoMemory)};
    if (code != kInternal) return {code, raised.what()};
    return {code, std::string("internal error: ") + raised.what() + "; please report this"};
  } catch (...) {
    return {kInternal, "internal error of an unknown kind; please report this"};
  }
}

}  // namespace

Verdict verdict_on(const std::exception_ptr& error) {
  Verdict verdict = raw_verdict_on(error);
  std::ranges::replace(verdict.sentence, '\n', ' ');
  verdict.sentence = printable(verdict.sentence);
  return verdict;
}

}  // namespace lockstep::cli
