// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep::transport {

// What all processes of a run share and nobody else knows. Never printed, never on a command line.
class Secret {
 public:
  // No secret: allowed only between processes of one host.
  Secret() = default;

  // LOCKSTEP_SECRET (the value itself) or LOCKSTEP_SECRET_FILE (a path); none of them: no secret; both, or
  // one that is empty: UsageError.
  static Secret from_environment();
  // LOCKSTEP_SECRET_FILE as it is set.
  static std::optional<std::string> file_in_environment();

  // The file's bytes without a final newline, 16 to 4096 of them. UsageError when it is missing, readable or
  // writable by group or others (says: chmod 600), too short or too long.
  static Secret from_file(const std::filesystem::path& path);

  // The same limits on length; UsageError does not repeat the value.
  static Secret from_value(const std::string& value);

  // 32 random bytes as 64 hexadecimal digits.
  static Secret generate();

  bool empty() const { return value_.empty(); }
  ConstBytes bytes() const { return std::as_bytes(std::span(value_)); }
  // For handing the secret to a child process in its environment, and for nothing else.
  const std::string& value_for_environment() const { return value_; }

 private:
  explicit Secret(std::string value) : value_(std::move(value)) {}
  std::string value_;
};

}  // namespace lockstep::transport
