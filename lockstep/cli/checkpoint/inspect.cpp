// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/checkpoint/inspect.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/checkpoint/progress_values.h"
#include "lockstep/cli/checkpoint/text.h"
#include "lockstep/cli/printable.h"

namespace lockstep::cli {
namespace {

using checkpoint::LogicalTensor;
using checkpoint::Manifest;

// Where the pieces of a tensor are.
struct Places {
  std::size_t pieces = 0;
  std::set<std::string> files;
};

std::map<std::string, Places> places_in(const Manifest& manifest) {
  std::map<std::string, Places> places;
  for (const checkpoint::ShardFile& file : manifest.files) {
    for (const checkpoint::Piece& piece : file.pieces) {
      ++places[piece.tensor].pieces;
      places[piece.tensor].files.insert(file.name);
    }
  }
  return places;
}

std::string text_of(const Places& places) {
  if (places.pieces == 0) return "no elements";
  const std::string& first = *places.files.begin();
  if (places.pieces == 1) return first;
  if (places.files.size() == 1) return fmt::format("{} pieces in {}", places.pieces, first);
  return counted(places.pieces, "piece") + " in " + counted(places.files.size(), "file");
}

std::string row(std::string_view name, std::string_view value) {
  return fmt::format("  {:<17} {}\n", name, value);
}

std::string tensors_text(const Manifest& manifest) {
  const std::map<std::string, Places> places = places_in(manifest);
  std::size_t names = 0;
  std::size_t shapes = 0;
  for (const LogicalTensor& tensor : manifest.tensors) {
    names = std::max(names, printable(tensor.name).size());
    shapes = std::max(shapes, shape_text(tensor.shape).size());
  }
  std::string text;
  for (const LogicalTensor& tensor : manifest.tensors) {
    const auto found = places.find(tensor.name);
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", printable(tensor.name), names, shape_text(tensor.shape),
                        shapes, text_of(found == places.end() ? Places{} : found->second));
  }
  return text;
}

std::string configuration_text(const std::string& configuration) {
  std::string text;
  for (std::size_t at = 0; at < configuration.size();) {
    const std::size_t end = std::min(configuration.find('\n', at), configuration.size());
    text += fmt::format("  {}\n", printable(std::string_view(configuration).substr(at, end - at)));
    at = end + 1;
  }
  return text;
}

}  // namespace

std::string inspect_text(const checkpoint::Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  std::string text = printable(checkpoint.path()) + "\n";
  text += row("written by", printable(manifest.written_by));
  text += row("arithmetic", manifest.arithmetic.empty() ? "not known" : printable(manifest.arithmetic));
  for (const auto& [name, value] : progress_values(manifest.progress)) text += row(name, value);
  text += row("lanes", std::to_string(manifest.lanes));
  text += row("tensor_lanes", std::to_string(manifest.tensor_lanes));
  text += row("data_digest", printable(manifest.data_digest));
  text += row("tokenizer_digest",
              manifest.tokenizer_digest.empty() ? "none" : printable(manifest.tokenizer_digest));
  text += counted(manifest.files.size(), "file") + "\n";
  for (const checkpoint::ShardFile& file : manifest.files) {
    text += fmt::format("  {}  {}  {}\n", file.name, rounded_size(file.bytes), to_text(file.hash));
  }
  text += fmt::format("{} tensors\n{}", manifest.tensors.size(), tensors_text(manifest));
  return text + "configuration\n" + configuration_text(manifest.configuration);
}

std::string inspect_json(const checkpoint::Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  const std::map<std::string, Places> places = places_in(manifest);
  Json tensors = Json::array();
  for (const LogicalTensor& tensor : manifest.tensors) {
    const auto found = places.find(tensor.name);
    const Places where = found == places.end() ? Places{} : found->second;
    tensors.push_back(
        {{"name", tensor.name}, {"shape", tensor.shape}, {"pieces", where.pieces}, {"files", where.files}});
  }
  Json files = Json::array();
  for (const checkpoint::ShardFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", to_text(file.hash)}});
  }
  const checkpoint::Progress& progress = manifest.progress;
  return json_line({{"path", checkpoint.path()},
                    {"written_by", manifest.written_by},
                    {"arithmetic", manifest.arithmetic},
                    {"progress",
                     {{"step", progress.step},
                      {"data_position", progress.data_position},
                      {"bad_steps", progress.bad_steps},
                      {"bad_in_a_row", progress.bad_in_a_row},
                      {"loss_scale", json_number(progress.loss_scale)},
                      {"good_steps", progress.good_steps},
                      {"loss", json_number(progress.loss)}}},
                    {"lanes", manifest.lanes},
                    {"tensor_lanes", manifest.tensor_lanes},
                    {"data_digest", manifest.data_digest},
                    {"tokenizer_digest", manifest.tokenizer_digest},
                    {"files", std::move(files)},
                    {"tensors", std::move(tensors)},
                    {"configuration", manifest.configuration}});
}

}  // namespace lockstep::cli
