// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>

#include <CLI/App.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/secret.h"

namespace lockstep::cli {
namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw UsageError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

[[noreturn]] void refuse_existing(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("{} is a folder: name the file to create in it, as in {}", path,
                                 (std::filesystem::path(path) / "lockstep-secret").string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw UsageError(
        fmt::format("{} is there and is not an ordinary file: name one that does not exist yet", path));
  }
  throw UsageError(fmt::format(
      "{} already exists: a secret is never overwritten; remove the file or choose another name", path));
}

transport::Descriptor create_private(const std::string& path) {
  transport::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && (errno == EEXIST || errno == EISDIR)) refuse_existing(path);
  if (!file || ::fchmod(file.get(), 0600) != 0) cannot_write(path);
  return file;
}

void write_all(const transport::Descriptor& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) cannot_write(path);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(file.get()) != 0 && errno != EINVAL) cannot_write(path);
}

int keygen(const std::string& path) {
  if (path.empty()) throw UsageError("the name of the file is empty: name one that does not exist yet");
  const transport::Descriptor file = create_private(path);
  try {
    write_all(file, transport::Secret::generate().value_for_environment() + "\n", path);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
  print(
      std::cout,
      fmt::format("wrote {} (readable by you only)\n"
                  "copy it to all hosts of the run, keep its permissions, and set LOCKSTEP_SECRET_FILE={}\n",
                  path, std::filesystem::absolute(path).string()));
  return kDone;
}

}  // namespace

void add_keygen(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("keygen", "Make a secret that the processes of a run share");
  command->footer(
      "The file is created with permissions 0600 and never overwritten. All processes of a run prove to "
      "each\n"
      "other that they know the secret before anything else is read; ranks on several hosts need one.");
  const auto path = std::make_shared<std::string>();  // shared by the option and the action
  command->add_option("FILE", *path, "The file to create")->required();
  command->callback([path, &invocation] { invocation.action = [path] { return keygen(*path); }; });
}

}  // namespace lockstep::cli
