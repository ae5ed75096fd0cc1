// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/checkpoint/list.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/checkpoint/text.h"
#include "lockstep/cli/printable.h"

namespace lockstep::cli {
namespace {

ListedCheckpoint look_at(const std::string& path, std::int64_t step) {
  ListedCheckpoint listed;
  listed.step = step;
  listed.path = path;
  try {
    const checkpoint::Checkpoint opened(path);
    const checkpoint::Manifest& manifest = opened.manifest();
    listed.step = manifest.progress.step;
    for (const checkpoint::ShardFile& file : manifest.files) listed.bytes += file.bytes;
    listed.tensors = manifest.tensors.size();
    if (manifest.progress.step > 0) listed.loss = manifest.progress.loss;
    listed.written_by = manifest.written_by;
  } catch (const DataError& error) {
    listed.problem = error.what();
  }
  return listed;
}

// The newest that can be used; what `lockstep train --resume auto` would try first.
std::size_t newest_of(const std::vector<ListedCheckpoint>& checkpoints) {
  const auto found = std::find_if(checkpoints.begin(), checkpoints.end(),
                                  [](const ListedCheckpoint& one) { return one.problem.empty(); });
  return static_cast<std::size_t>(found - checkpoints.begin());
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(const std::string& path) {
  const auto store = checkpoint::find_store(path);
  if (!store) return {look_at(checkpoint::find_checkpoint(path), 0)};
  const checkpoint::CheckpointStore opened(*store);
  std::vector<ListedCheckpoint> found;
  for (const checkpoint::Listed& one : opened.committed()) found.push_back(look_at(one.path, one.step));
  for (const checkpoint::Incomplete& one : opened.incomplete()) {
    ListedCheckpoint& listed = found.emplace_back();
    listed.step = one.folder.step;
    listed.path = one.folder.path;
    listed.problem = "it " + one.reason;
  }
  return found;
}

std::vector<std::string> committed_in(const std::string& path) {
  const std::string newest = checkpoint::find_checkpoint(path);
  const auto store = newest == path ? std::nullopt : checkpoint::find_store(path);
  if (!store) return {newest};
  std::vector<std::string> found;
  for (const checkpoint::Listed& one : checkpoint::CheckpointStore(*store).committed()) {
    found.push_back(one.path);
  }
  return found;
}

std::string list_text(const std::vector<ListedCheckpoint>& checkpoints) {
  const std::size_t newest = newest_of(checkpoints);
  std::size_t width = std::string_view("written by").size();
  for (const ListedCheckpoint& one : checkpoints) width = std::max(width, printable(one.written_by).size());
  std::string text = fmt::format("  {:>10} {:>9} {:>7} {:>9}  {:<{}}  path\n", "step", "size", "tensors",
                                 "loss", "written by", width);
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const ListedCheckpoint& one = checkpoints[i];
    if (one.problem.empty()) {
      text +=
          fmt::format("{} {:>10} {:>9} {:>7} {:>9}  {:<{}}  {}\n", i == newest ? '*' : ' ', one.step,
                      rounded_size(one.bytes), one.tensors, one.loss ? fmt::format("{:.4f}", *one.loss) : "-",
                      printable(one.written_by), width, printable(one.path));
    } else {
      text += fmt::format("! {:>10} cannot be used: {} ({})\n", one.step, printable(one.problem),
                          printable(one.path));
    }
  }
  return text + (newest < checkpoints.size() ? "* the newest\n" : "");
}

std::string list_json(const std::vector<ListedCheckpoint>& checkpoints) {
  const std::size_t newest = newest_of(checkpoints);
  Json list = Json::array();
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const ListedCheckpoint& one = checkpoints[i];
    Json entry = {{"step", one.step}, {"path", one.path}, {"usable", one.problem.empty()}};
    if (one.problem.empty()) {
      entry.update({{"newest", i == newest},
                    {"bytes", one.bytes},
                    {"tensors", one.tensors},
                    {"loss", one.loss ? json_number(*one.loss) : Json()},
                    {"written_by", one.written_by}});
    } else {
      entry["problem"] = one.problem;
    }
    list.push_back(std::move(entry));
  }
  return json_line({{"checkpoints", std::move(list)}});
}

}  // namespace lockstep::cli
