// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/base/output_file.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/schedule_report.h"
#include "lockstep/cli/schedule_svg.h"
#include "lockstep/rendezvous/text.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/csv.h"

namespace lockstep::cli {
namespace {

struct ShowFlags {
  std::string schedule;
  int stages = 0;
  int micro_batches = 0;
  int virtual_stages = 0;
  std::string from;
  std::string costs = "1,1,1";
  double link = 0;
  std::string svg;
  std::string csv;
  bool json = false;
};

constexpr double kLeastCost = 0.001;
constexpr double kMostCost = 1000;
constexpr std::size_t kMostPasses = 100'000;  // a picture of more is of no use to anyone, and large

schedule::PipelineCosts parse_costs(const std::string& text, double link) {
  double costs[3] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  for (int i = 0; i < 3 && good; ++i) {
    if (i > 0) good = at != end && *at++ == ',';
    const auto [stop, error] = std::from_chars(at, end, costs[i]);
    good = good && error == std::errc() && costs[i] >= kLeastCost && costs[i] <= kMostCost;
    at = stop;
  }
  if (!good || at != end) {
    throw UsageError(fmt::format(
        "--costs is {}: expected the times of F, I and W, three numbers from {} to {}, as in 1,1.2,0.8",
        rendezvous::quote(text), kLeastCost, kMostCost));
  }
  return {.forward = costs[0],
          .backward = costs[1] + costs[2],
          .backward_input = costs[1],
          .backward_weight = costs[2],
          .link = link};
}

schedule::Pipeline from_flags(const ShowFlags& flags) {
  if (flags.schedule.ends_with(".csv")) {
    throw UsageError(fmt::format("--schedule takes a name: give the file as --from {}", flags.schedule));
  }
  if (flags.stages == 0 || flags.micro_batches == 0) {
    throw UsageError("lockstep schedule show needs --stages and --micro-batches, or a file with --from");
  }
  return schedule::make_pipeline(
      {.schedule = schedule::parse_pipeline_schedule(flags.schedule.empty() ? "1f1b" : flags.schedule),
       .stages = flags.stages,
       .micro_batches = flags.micro_batches,
       .virtual_stages = flags.virtual_stages == 0 ? 1 : flags.virtual_stages});
}

schedule::Pipeline from_file(const ShowFlags& flags) {
  if (!flags.schedule.empty() || flags.stages != 0 || flags.micro_batches != 0 || flags.virtual_stages != 0) {
    throw UsageError(
        "--from gives the whole schedule: leave out --schedule, --stages, --micro-batches and "
        "--virtual-stages");
  }
  if (!flags.csv.empty()) throw UsageError("--csv and --from exclude each other: the file is there already");
  const MappedFile file(flags.from);
  return schedule::parse_pipeline_csv(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, flags.from);
}

// Like every program, this one is proved before anything is done with it.
std::vector<int> proved(const schedule::Pipeline& pipeline, const ShowFlags& flags) {
  schedule::PipelineCheck check = schedule::check_pipeline(pipeline);
  if (!check.violation) return std::move(check.peak_live);
  const std::string sentence = to_string(*check.violation, pipeline);
  LOCKSTEP_CHECK(!flags.from.empty(), sentence);
  throw UsageError(fmt::format("{}: {}", flags.from, sentence));
}

void check_size(const schedule::Pipeline& pipeline) {
  std::size_t passes = 0;
  for (const auto& program : pipeline.programs) passes += program.size();
  if (passes <= kMostPasses) return;
  throw UsageError(fmt::format(
      "the schedule has {} passes, and no more than {} are shown: take fewer stages or micro-batches", passes,
      kMostPasses));
}

GanttStyle style_of_output() {
  GanttStyle style;
  if (::isatty(STDOUT_FILENO) == 0) return style;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.columns = size.ws_col;
  const char* const no_colour = std::getenv("NO_COLOR");
  style.coloured = no_colour == nullptr || *no_colour == '\0';
  return style;
}

int show(const ShowFlags& flags) {
  const schedule::PipelineCosts costs = parse_costs(flags.costs, flags.link);
  const schedule::Pipeline pipeline = flags.from.empty() ? from_flags(flags) : from_file(flags);
  check_size(pipeline);
  std::vector<int> peak_live = proved(pipeline, flags);
  const schedule::Timeline timeline = schedule::time_pipeline(pipeline, costs);
  const std::string name = flags.schedule.empty() ? "1f1b" : flags.schedule;
  const ScheduleReport report = {.title = flags.from.empty() ? name : flags.from,
                                 .timed = {pipeline, timeline},
                                 .costs = costs,
                                 .peak_live = std::move(peak_live)};
  if (!flags.csv.empty()) write_atomically(flags.csv, schedule::to_csv(pipeline));
  if (!flags.svg.empty()) {
    write_atomically(flags.svg, draw_svg(report.timed, std::array{bubble_text(report), memory_text(report)}));
  }
  print(std::cout, flags.json ? report_json(report) : report_text(report, style_of_output()));
  return kDone;
}

void add_show(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("show", "Draw a schedule, with its bubble and its memory");
  command->footer(
      "The bubble is the share of all stages' time, from the first pass to the last, in which they compute\n"
      "nothing. A file for --from has one row per stage with cells as F0, B3, or I3 and W3 for the halves of "
      "a\n"
      "backward pass, .1 after it on chunk 1, and empty ones; what --csv writes is an example.\n"
      "docs/algorithms.md has the formulas.");
  const auto flags = std::make_shared<ShowFlags>();  // shared by the options and the action
  command->add_option("--schedule", flags->schedule,
                      "naive, gpipe, 1f1b (default), interleaved, zbh1 or zbv");
  command->add_option("--stages", flags->stages, "Ranks of the pipeline")
      ->check(whole_number(1, schedule::kMaxPipelineStages));
  command->add_option("--micro-batches", flags->micro_batches, "Micro-batches of a step")
      ->check(whole_number(1, schedule::kMaxMicroBatches));
  command->add_option("--virtual-stages", flags->virtual_stages, "Chunks of each stage, for interleaved")
      ->check(whole_number(1, schedule::kMaxVirtualStages));
  command->add_option("--from", flags->from, "CSV file with a schedule to check and draw");
  command->add_option(
      "--costs", flags->costs,
      "Times F,I,W of forward, input and weight gradient of a chunk (default 1,1,1); B is I + W");
  command->add_option("--link", flags->link, "Time of a message between stages (default 0)")
      ->check(number(0, kMostCost));
  command->add_option("--svg", flags->svg, "FILE to draw it to");
  command->add_option("--csv", flags->csv, "FILE to write it to, as --from reads it");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &invocation] { invocation.action = [flags] { return show(*flags); }; });
}

}  // namespace

void add_schedule(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("schedule", "Look at schedules of pipelines");
  add_show(*command, invocation);
  // Runs after that of the command inside, if there is one.
  command->callback([&invocation] {
    if (invocation.action) return;
    invocation.action = []() -> int {
      throw UsageError("lockstep schedule needs a command: `lockstep schedule --help` lists them");
    };
  });
}

}  // namespace lockstep::cli
