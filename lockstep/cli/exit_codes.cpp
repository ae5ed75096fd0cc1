// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/exit_codes.h"

#include <new>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

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
  } catch (const DataError& raised) {
    return {kBadData, one_line(raised.what())};
  } catch (const CommError& raised) {
    return {kInterrupted, one_line(raised.what())};
  } catch (const InternalError& raised) {
    return {kInternal, one_line(raised.what())};
  } catch (const std::bad_alloc&) {
    return {kInternal, "out of memory"};
  } catch (const std::exception& raised) {
    return {kInternal, "internal error: " + one_line(raised.what()) + "; please report this"};
  } catch (...) {
    return {kInternal, "internal error of an unknown kind; please report this"};
  }
}

}  // namespace lockstep::cli
