// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/failpoint.h"
#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"

namespace lockstep::cli {
namespace {

using failpoint::kPoints;
using failpoint::Point;

std::string list_text() {
  std::size_t names = 0;
  std::size_t sources = 0;
  for (const Point& point : kPoints) {
    names = std::max(names, point.name.size());
    sources = std::max(sources, point.where.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  phase\n", "name", names, "source", sources);
  for (const Point& point : kPoints) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", point.name, names, point.where, sources, point.phase);
  }
  if (!failpoint::kAreBuilt) text += "this program was built without them\n";
  return text;
}

std::string list_json() {
  Json list = Json::array();
  for (const Point& point : kPoints) {
    list.push_back({{"name", point.name},
                    {"source", point.where},
                    {"phase", point.phase},
                    {"on_disk", point.medium == failpoint::Medium::disk}});
  }
  return json_line({{"built", failpoint::kAreBuilt}, {"failpoints", std::move(list)}});
}

}  // namespace

void add_failpoints(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("failpoints", "List the places at which tests can make a process fail");
  command->footer(fmt::format(
      "They are armed by the environment of a process: {}='NAME@rank=1,step=7:kill;...'.\n"
      "Conditions: rank=, step=, hit= (the n-th time), once=FILE. Actions: kill, stop, exit(n), sleep(ms), "
      "throw,\n"
      "enospc and eio for those on a disk, and corrupt(bit) where there are values. docs/faults.md says what "
      "each fault must lead to.",
      failpoint::kVariable));
  const auto json = std::make_shared<bool>(false);  // shared by the option and the action
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json, &invocation] {
    invocation.action = [json] {
      print(std::cout, *json ? list_json() : list_text());
      return kDone;
    };
  });
}

}  // namespace lockstep::cli
