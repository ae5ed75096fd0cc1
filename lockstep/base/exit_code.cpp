// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/exit_code.h"

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"

namespace lockstep {
namespace {

template <typename Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

int exit_code_of(const std::exception& error) {
  if (is<UsageError>(error)) return exit_code::kBadUsage;
  if (is<InUseError>(error)) return exit_code::kInUse;
  if (is<DataError>(error)) return exit_code::kBadData;
  if (is<CommError>(error)) return exit_code::kInterrupted;
  // A path that cannot be looked at is a user's, and a full or broken disk their setup, as in a UsageError.
  const bool is_setup = is_lack_of_memory(error) || is<std::filesystem::filesystem_error>(error);
  return is_setup ? exit_code::kBadUsage : exit_code::kInternal;
}

bool is_lack_of_memory(const std::exception& error) {
  if (is<Error>(error)) return false;
  if (is<std::bad_alloc>(error)) return true;
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error)) {
    // This is how a thread that cannot be started is reported.
    return of_system->code() == std::errc::resource_unavailable_try_again ||
           of_system->code() == std::errc::not_enough_memory;
  }
  // libtorch has no error of its own for this.
  return std::string_view(error.what()).find("allocate memory") != std::string_view::npos;
}

}  // namespace lockstep
