// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/secret.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/private_file.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kMinBytes = 16;
constexpr std::size_t kMaxBytes = 4096;

void check_length(std::size_t length, std::string_view where) {
  if (length < kMinBytes || length > kMaxBytes) {
    throw UsageError(
        fmt::format("the secret in {} has {} bytes, but must have {} to {}: make one with "
                    "`lockstep keygen FILE`",
                    where, length, kMinBytes, kMaxBytes));
  }
}

}  // namespace

Secret Secret::from_environment() {
  const char* value = std::getenv("LOCKSTEP_SECRET");
  const std::optional<std::string> file = file_in_environment();
  if (value != nullptr && file) {
    throw UsageError("LOCKSTEP_SECRET and LOCKSTEP_SECRET_FILE are both set: unset one of them");
  }
  if (value != nullptr) {
    check_length(std::strlen(value), "LOCKSTEP_SECRET");
    return Secret(value);
  }
  if (!file) return {};
  // As empty as an unset variable of a script: who meant a secret must not run without one.
  if (file->empty()) {
    throw UsageError(
        "LOCKSTEP_SECRET_FILE is set, but empty: name the file of the secret, or unset it to have none");
  }
  return from_file(*file);
}

std::optional<std::string> Secret::file_in_environment() {
  const char* file = std::getenv("LOCKSTEP_SECRET_FILE");
  if (file == nullptr) return std::nullopt;
  return file;
}

Secret Secret::from_file(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) {
    throw UsageError(
        fmt::format("there is no secret file {0}: make one with `lockstep keygen {0}`, or copy it "
                    "from another host of the run",
                    path.string()));
  }
  std::string value = read_private_file(path, "secret file", kMaxBytes + 1);
  if (value.ends_with('\n')) value.pop_back();
  check_length(value.size(), path.string());
  return Secret(std::move(value));
}

Secret Secret::from_value(const std::string& value) {
  check_length(value.size(), "the given value");
  return Secret(value);
}

Secret Secret::generate() {
  std::array<unsigned char, 32> random{};
  LOCKSTEP_CHECK(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  std::string digits;
  for (const unsigned char byte : random) digits += fmt::format("{:02x}", byte);
  return Secret(std::move(digits));
}

}  // namespace lockstep::transport
