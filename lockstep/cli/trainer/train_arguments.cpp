// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/train_arguments.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"

namespace lockstep::cli {
namespace {

int workers_of(const std::string& value) {
  std::size_t read = 0;
  int count = 0;
  try {
    count = std::stoi(value, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read != value.size() || count < 1 || count > kMaxWorld) {
    throw UsageError(
        fmt::format("--workers is '{}': expected a whole number from 1 to {}", value, kMaxWorld));
  }
  return count;
}

// Flags that stand for keys.
std::string written_out(const std::string& argument) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kShort = {
      {{"--resume", "--checkpoint.resume"}, {"--init-from", "--checkpoint.initial_load_path"}}};
  for (const auto& [name, key] : kShort) {
    const std::string_view rest = std::string_view(argument).substr(std::min(name.size(), argument.size()));
    if (argument.starts_with(name) && (rest.empty() || rest.front() == '=')) {
      return std::string(key).append(rest);
    }
  }
  return argument;
}

// Takes "NAME VALUE" or "NAME=VALUE" at `i`, which then stands at the last word of it.
std::optional<std::string> value_of(Arguments arguments, std::size_t& i, std::string_view name) {
  const std::string& argument = arguments[i];
  if (argument == name) {
    if (i + 1 == arguments.size()) throw UsageError(fmt::format("{} needs a value", name));
    return arguments[++i];
  }
  if (argument.starts_with(name) && argument.size() > name.size() && argument[name.size()] == '=') {
    return argument.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

TrainArguments split_arguments(const std::string& command, Arguments arguments) {
  TrainArguments split;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto workers = value_of(arguments, i, "--workers");
    if (!workers) workers = value_of(arguments, i, "-n");
    if (workers) {
      split.workers = workers_of(*workers);
    } else if (const auto listen = value_of(arguments, i, "--listen")) {
      split.listen = transport::parse_address(*listen);
    } else if (const auto join = value_of(arguments, i, "--join")) {
      split.join = transport::parse_address(*join);
    } else if (!is_flag(arguments[i]) && split.file.empty() && split.key_flags.empty()) {
      split.file = arguments[i];
    } else {
      split.key_flags.push_back(written_out(arguments[i]));
    }
  }
  if (split.file.empty()) {
    throw UsageError(
        fmt::format("no run file: write it first, as in `lockstep {} run.toml --workers 2`", command));
  }
  return split;
}

}  // namespace lockstep::cli
