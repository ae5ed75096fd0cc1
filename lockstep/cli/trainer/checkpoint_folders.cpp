// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint export` and `import`: the two that need the model, and so libtorch.
#include <filesystem>
#include <iostream>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/printable.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/made_folder.h"
#include "lockstep/train/checkpoint_model.h"

namespace lockstep::cli {
namespace {

struct FolderFlags {
  std::string hugging_face;  // folder
  std::string path;
  std::string dtype;
  std::string tokenizer;
};

int export_folder(const FolderFlags& flags) {
  train::ExportOptions options = {.tokenizer = flags.tokenizer};
  if (!flags.dtype.empty()) {
    expect_one_of("--dtype", flags.dtype, std::vector<std::string>{"fp32", "bf16", "fp16"});
    options.dtype = parse_dtype(flags.dtype);
  }
  const MadeFolder above(std::filesystem::absolute(flags.hugging_face).lexically_normal().parent_path());
  train::export_model(flags.path, flags.hugging_face, options);
  print(std::cout, fmt::format("wrote {0}: `lockstep generate {0} --prompt TEXT` lets it write\n",
                               printable(flags.hugging_face)));
  return kDone;
}

int import_folder(const FolderFlags& flags) {
  const MadeFolder store(flags.path);
  const std::string made = train::import_model(flags.hugging_face, flags.path);
  print(std::cout, fmt::format("wrote {0}: `lockstep train RUN.toml --init-from {0}` begins with it\n",
                               printable(made)));
  return kDone;
}

// Help was asked for, and given.
bool answered(CLI::App& app, const std::vector<std::string>& arguments) {
  check_arguments(app, app.get_name(), arguments);
  std::string answer;
  if (!parse(app, arguments, answer)) return false;
  print(std::cout, answer);
  return true;
}

}  // namespace

int run_checkpoint_export(const std::vector<std::string>& arguments) {
  FolderFlags flags;
  CLI::App app(kExportSummary, "lockstep checkpoint export");
  app.add_option("PATH", flags.path, "Checkpoint, or folder of a run: its newest one")->required();
  app.add_option("--hf", flags.hugging_face, "Folder to write, which is replaced as a whole")->required();
  app.add_option("--dtype", flags.dtype, "fp32, bf16 or fp16 (default: that the run trained in)");
  app.add_option("--tokenizer", flags.tokenizer, "File of the tokenizer (default: that of the run)");
  return answered(app, arguments) ? kDone : export_folder(flags);
}

int run_checkpoint_import(const std::vector<std::string>& arguments) {
  FolderFlags flags;
  CLI::App app(kImportSummary, "lockstep checkpoint import");
  app.add_option("STORE", flags.path, "Folder of checkpoints to put it in, as step-0")->required();
  app.add_option("--hf", flags.hugging_face, "Folder to read")->required();
  return answered(app, arguments) ? kDone : import_folder(flags);
}

}  // namespace lockstep::cli
