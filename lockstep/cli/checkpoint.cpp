// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/cli/checkpoint/difference.h"
#include "lockstep/cli/checkpoint/inspect.h"
#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/checkpoint/list.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/printable.h"
#include "lockstep/cli/trainer/commands.h"

namespace lockstep::cli {
namespace {

using checkpoint::Checkpoint;
using checkpoint::find_checkpoint;

struct CheckpointFlags {
  std::string path;
  std::string other;
  bool json = false;
};

int list(const CheckpointFlags& flags) {
  const std::vector<ListedCheckpoint> found = list_checkpoints(flags.path);
  print(std::cout, flags.json ? list_json(found) : list_text(found));
  return kDone;
}

int inspect(const CheckpointFlags& flags) {
  const Checkpoint opened(find_checkpoint(flags.path));
  print(std::cout, flags.json ? inspect_json(opened) : inspect_text(opened));
  return kDone;
}

// What should have been one; not what a writer that died has left under a passing name.
std::vector<checkpoint::Incomplete> incomplete_in(const std::string& path) {
  const auto store = checkpoint::find_store(path);
  if (!store) return {};
  std::vector<checkpoint::Incomplete> found = checkpoint::CheckpointStore(*store).incomplete();
  std::erase_if(found, [](const checkpoint::Incomplete& one) { return one.is_partial; });
  return found;
}

int verify(const CheckpointFlags& flags) {
  const std::vector<std::string> paths = committed_in(flags.path);
  std::vector<std::string> reasons;
  std::string text;
  Json list = Json::array();
  for (const std::string& path : paths) {
    try {
      Checkpoint(path).verify();
      text += fmt::format("good  {}\n", printable(path));
      list.push_back({{"path", path}, {"good", true}});
    } catch (const DataError& error) {
      reasons.emplace_back(error.what());
      text += fmt::format("BAD   {}\n", printable(path));
      list.push_back({{"path", path}, {"good", false}, {"problem", error.what()}});
    }
  }
  for (const checkpoint::Incomplete& one : incomplete_in(flags.path)) {
    text += fmt::format("none  {}: it {}\n", printable(one.folder.path), printable(one.reason));
    list.push_back({{"path", one.folder.path}, {"good", false}, {"problem", "it " + one.reason}});
  }
  print(std::cout, flags.json ? json_line({{"checkpoints", std::move(list)}}) : text);
  if (reasons.empty()) return kDone;
  if (paths.size() == 1) throw DataError(reasons.front());
  throw DataError(fmt::format("{} of {} checkpoints are bad; the newest of them: {}", reasons.size(),
                              paths.size(), reasons.front()));
}

int hash(const CheckpointFlags& flags) {
  Checkpoint opened(find_checkpoint(flags.path));
  const std::string digest = to_text(logical_hash(opened));
  print(std::cout, flags.json ? json_line({{"hash", digest}, {"path", opened.path()}})
                              : fmt::format("{}  {}\n", digest, printable(opened.path())));
  return kDone;
}

int diff(const CheckpointFlags& flags) {
  Checkpoint first(find_checkpoint(flags.path));
  Checkpoint second(find_checkpoint(flags.other));
  const std::vector<Difference> found = differences_between(first, second);
  print(std::cout, flags.json ? difference_json(found) : difference_text(found, first));
  return are_equal(found) ? kDone : kDiffers;
}

// A command that looks at PATH, and at OTHER when that has a description.
struct Look {
  const char* name;
  const char* description;
  int (*action)(const CheckpointFlags&);
  const char* path;
  const char* other = nullptr;
};

void add_look(CLI::App& app, Invocation& invocation, const Look& look) {
  CLI::App* command = app.add_subcommand(look.name, look.description);
  const auto flags = std::make_shared<CheckpointFlags>();  // shared by the options and the action
  command->add_option(look.path, flags->path, "A checkpoint, a folder of several, or the folder of a run")
      ->required();
  if (look.other != nullptr) command->add_option(look.other, flags->other, "The same")->required();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, &invocation, action = look.action] {
    invocation.action = [flags, action] { return action(*flags); };
  });
}

// These read their own flags, --help among them.
void add_handed_over(CLI::App& app, Invocation& invocation, const char* name, const char* description,
                     int (*action)(const std::vector<std::string>&)) {
  CLI::App* command = app.add_subcommand(name, description);
  command->prefix_command();
  command->set_help_flag("");
  command->callback([&invocation, action] {
    invocation.action = [&invocation, action] { return action(invocation.trailing); };
  });
}

}  // namespace

void add_checkpoint(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "checkpoint",
      "Look at checkpoints, check and compare them, and move weights to and from Hugging Face folders");
  command->footer(
      "Where one checkpoint is asked for and there are several, the newest is taken. Bad ones end a command "
      "with 65,\n"
      "and diff ends with 1 when the two differ. docs/formats/checkpoint.md describes the files.");
  add_look(*command, invocation, {"ls", "List them, the newest first", list, "PATH"});
  add_look(*command, invocation, {"inspect", "Show progress, tensors and configuration", inspect, "PATH"});
  add_look(*command, invocation, {"verify", "Read all bytes and compare all hashes", verify, "PATH"});
  add_look(*command, invocation,
           {"hash", "Print one digest of tensors and progress, the same for any layout", hash, "PATH"});
  add_look(*command, invocation, {"diff", "Compare two, value by value", diff, "A", "B"});
  add_handed_over(*command, invocation, "export", kExportSummary, run_checkpoint_export);
  add_handed_over(*command, invocation, "import", kImportSummary, run_checkpoint_import);
  // Runs after that of the command inside, if there is one.
  command->callback([&invocation] {
    if (invocation.action) return;
    invocation.action = []() -> int {
      throw UsageError("lockstep checkpoint needs a command: `lockstep checkpoint --help` lists them");
    };
  });
}

}  // namespace lockstep::cli
