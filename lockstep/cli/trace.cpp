// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/trace_bubble.h"
#include "lockstep/metrics/trace_file.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // bytes, about: so much of a file is in memory

struct TraceFlags {
  std::vector<std::string> files;
  std::string output;
  bool json = false;
};

using Take = std::function<void(const std::string& events, const std::string& file)>;

// What a reader that looks for lines with events would take for a trace without any.
void require_trace(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw UsageError(fmt::format("cannot read {}: it is a folder; its traces are files in it", file));
  }
  // What is read here of a pipe would be missing later.
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  std::ifstream in(file, std::ios::binary);
  const std::string_view expected = metrics::kBeginOfTrace;
  std::string begin(expected.size() + 1, '\0');
  in.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  // That of a process that was killed may end anywhere.
  const bool begins_list = expected.starts_with(begin.substr(0, expected.size()));
  if (begins_list && (begin.size() <= expected.size() || begin.back() == '{' || begin.back() == '\n')) return;
  throw DataError(
      fmt::format("{} at byte 0 is no trace that lockstep has written: it begins no list of events", file));
}

void read_all(const std::vector<std::string>& files, const Take& take) {
  for (const std::string& file : files) {
    metrics::TraceReader reader(file);
    require_trace(file);
    for (std::string events = reader.next(kPiece); !events.empty(); events = reader.next(kPiece)) {
      take(events, file);
    }
  }
}

void write_all(const std::vector<std::string>& files, const std::string& path) {
  metrics::TraceFile output(path);
  read_all(files, [&](const std::string& events, const std::string& file) {
    passes_in(events, file);  // refuses what viewers could not read either
    output.add(events);
  });
  if (!output.is_whole()) throw OutputError(fmt::format("cannot write all of {}", path));
}

int put_together(const TraceFlags& flags) {
  std::error_code error;
  if (const auto there = std::filesystem::status(flags.output, error);
      std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw UsageError(fmt::format("--output {} is there and is not an ordinary file", flags.output));
  }
  const std::string unfinished = flags.output + ".unfinished";
  try {
    write_all(flags.files, unfinished);
    std::filesystem::rename(unfinished, flags.output, error);
    if (error) throw OutputError(fmt::format("cannot write {}: {}", flags.output, error.message()));
  } catch (...) {
    std::filesystem::remove(unfinished, error);
    throw;
  }
  return kDone;
}

int show_bubble(const TraceFlags& flags) {
  std::vector<TracedPass> passes;
  read_all(flags.files, [&](const std::string& events, const std::string& file) {
    for (const TracedPass& pass : passes_in(events, file)) passes.push_back(pass);
  });
  const TraceBubble bubble = bubble_of(passes, flags.files.front());
  print(std::cout, flags.json ? to_json(bubble) : to_text(bubble));
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("trace", "Say how long the stages of a traced run idled");
  command->footer(
      "Reads what `lockstep train --metrics.enable_trace true` has written. The bubble is the share of all\n"
      "stages' time, from the first pass of a step to its last, in which they compute nothing; predicted is "
      "what\n"
      "`lockstep schedule show` has for the same schedule. docs/parallelism.md explains the rest.");
  const auto flags = std::make_shared<TraceFlags>();  // shared by the options and the action
  command->add_option("FILE", flags->files, "A trace, or those of the single ranks of a run that broke")
      ->required();
  command->add_option("--output", flags->output, "FILE to put all of them into, for viewers, instead");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &invocation] {
    invocation.action = [flags] {
      return flags->output.empty() ? show_bubble(*flags) : put_together(*flags);
    };
  });
}

}  // namespace lockstep::cli
