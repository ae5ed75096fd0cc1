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
#include "lockstep/rendezvous/text.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/unknown.h"

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

[[noreturn]] void refuse_flag(const std::string& command, const std::string& typed) {
  static const std::vector<std::string> kFlags = {"--workers", "--listen",    "--join",
                                                  "--resume",  "--init-from", "-n"};
  const std::string flag = typed.substr(0, typed.find('='));
  const std::string meant = spec::meant_flag(flag, kFlags);
  throw UsageError(fmt::format("unknown flag of lockstep {} {}: {}", command, rendezvous::quote(flag),
                               meant.empty() ? fmt::format("`lockstep {} --help` lists them", command)
                                             : fmt::format("did you mean '{}'?", meant)));
}

// The run file is the one argument that is no flag.
std::string file_in(const std::string& command, Arguments arguments) {
  std::string file;
  for (const std::string& argument : arguments) {
    if (is_flag(argument)) refuse_flag(command, argument);
    if (!file.empty()) {
      throw UsageError(
          fmt::format("lockstep {0} does not take {1} after the run file {2}: `lockstep {0} --help` "
                      "lists what it takes",
                      command, rendezvous::quote(argument), rendezvous::quote(file)));
    }
    file = argument;
  }
  if (file.empty()) {
    throw UsageError(
        fmt::format("no run file: write it first, as in `lockstep {} run.toml --workers 2`", command));
  }
  return file;
}

}  // namespace

TrainArguments split_arguments(const std::string& command, Arguments arguments) {
  TrainArguments split;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto workers = value_of(arguments, i, "--workers");
    if (!workers) workers = value_of(arguments, i, "-n");
    if (workers) {
      split.workers = workers_of(*workers);
    } else if (const auto listen = value_of(arguments, i, "--listen")) {
      split.listen = transport::parse_address(*listen);
    } else if (const auto join = value_of(arguments, i, "--join")) {
      split.join = transport::parse_address(*join);
    } else {
      others.push_back(written_out(arguments[i]));
    }
  }
  spec::SplitArguments parts = spec::split_key_flags(others);
  split.asks_for_help =
      std::ranges::any_of(parts.others, [](const auto& word) { return word == "--help" || word == "-h"; });
  if (split.asks_for_help) return split;
  split.key_flags = std::move(parts.key_flags);
  split.file = file_in(command, parts.others);
  return split;
}

}  // namespace lockstep::cli
