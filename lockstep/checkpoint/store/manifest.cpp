// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/manifest.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "lockstep/checkpoint/store/json_fields.h"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kFormat = "lockstep-checkpoint";
constexpr std::string_view kShardFormat = "lockstep-checkpoint-shard";

// JSON has no such numbers, and a loss may be one.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json json_of(const Progress& progress) {
  return {{"step", progress.step},
          {"data_position", progress.data_position},
          {"bad_steps", progress.bad_steps},
          {"bad_in_a_row", progress.bad_in_a_row},
          {"loss_scale", number(progress.loss_scale)},
          {"good_steps", progress.good_steps},
          {"loss", number(progress.loss)}};
}

Json json_of(const LastStep& step) {
  return {{"gradient_norm", number(step.gradient_norm)},
          {"learning_rate", number(step.learning_rate)},
          {"loss_scale", number(step.loss_scale)},
          {"seconds", number(step.seconds)},
          {"updated", step.updated}};
}

Json json_of(const Piece& piece) {
  return {{"tensor", piece.tensor},
          {"in_file", piece.in_file},
          {"elements",
           {{"first", piece.elements.first},
            {"length", piece.elements.length},
            {"distance", piece.elements.distance},
            {"count", piece.elements.count}}},
          {"hash", to_text(piece.hash)}};
}

Json json_of(const ShardFile& file) {
  Json pieces = Json::array();
  for (const Piece& piece : file.pieces) pieces.push_back(json_of(piece));
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"hash", to_text(file.hash)},
          {"pieces", std::move(pieces)}};
}

// What is not UTF-8, such as a path in the configuration, is written as well as it can be.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Fields fields_of(Progress& progress) {
  return {{"step", &progress.step},
          {"data_position", &progress.data_position},
          {"bad_steps", &progress.bad_steps},
          {"bad_in_a_row", &progress.bad_in_a_row},
          {"loss_scale", &progress.loss_scale},
          {"good_steps", &progress.good_steps},
          {"loss", &progress.loss}};
}

Fields fields_of(LastStep& step) {
  return {{"gradient_norm", &step.gradient_norm},
          {"learning_rate", &step.learning_rate},
          {"loss_scale", &step.loss_scale},
          {"seconds", &step.seconds},
          {"updated", &step.updated}};
}

Fields fields_of(Runs& runs) {
  return {
      {"first", &runs.first}, {"length", &runs.length}, {"distance", &runs.distance}, {"count", &runs.count}};
}

Fields fields_of(Piece& piece) {
  return {{"tensor", &piece.tensor},
          {"in_file", &piece.in_file},
          {"elements", JsonObject{[&piece] { return fields_of(piece.elements); }}},
          {"hash", &piece.hash}};
}

Fields fields_of(ShardFile& file) {
  return {{"name", &file.name},
          {"bytes", &file.bytes},
          {"hash", &file.hash},
          {"pieces", JsonList{[&file] { return fields_of(file.pieces.emplace_back()); }}}};
}

Fields fields_of(LogicalTensor& tensor) {
  return {{"name", &tensor.name}, {"shape", &tensor.shape}};
}

Fields fields_of(Manifest& manifest) {
  return {{"format", JsonText{kFormat}},
          {"version", JsonNumber{kVersion}},
          {"progress", JsonObject{[&manifest] { return fields_of(manifest.progress); }}},
          {"last_step", JsonObject{[&manifest] { return fields_of(manifest.last_step.emplace()); }},
           /*is_optional=*/true},
          {"lanes", &manifest.lanes},
          {"tensor_lanes", &manifest.tensor_lanes},
          {"configuration", &manifest.configuration},
          {"data_digest", &manifest.data_digest},
          {"tokenizer_digest", &manifest.tokenizer_digest},
          {"written_by", &manifest.written_by},
          {"arithmetic", &manifest.arithmetic, /*is_optional=*/true},
          {"tensors", JsonList{[&manifest] { return fields_of(manifest.tensors.emplace_back()); }}},
          {"files", JsonList{[&manifest] { return fields_of(manifest.files.emplace_back()); }}}};
}

}  // namespace

std::size_t LogicalTensor::elements() const {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

std::string to_json(const Manifest& manifest) {
  Json tensors = Json::array();
  for (const LogicalTensor& tensor : manifest.tensors) {
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  }
  Json files = Json::array();
  for (const ShardFile& file : manifest.files) files.push_back(json_of(file));
  Json all = {{"format", kFormat}, {"version", kVersion}, {"progress", json_of(manifest.progress)}};
  if (manifest.last_step) all["last_step"] = json_of(*manifest.last_step);
  all.update({{"lanes", manifest.lanes},
              {"tensor_lanes", manifest.tensor_lanes},
              {"configuration", manifest.configuration},
              {"data_digest", manifest.data_digest},
              {"tokenizer_digest", manifest.tokenizer_digest},
              {"written_by", manifest.written_by},
              {"arithmetic", manifest.arithmetic},
              {"tensors", std::move(tensors)},
              {"files", std::move(files)}});
  return text_of(all);
}

std::string to_json(const ShardFile& file) {
  return text_of({{"format", kShardFormat}, {"version", kVersion}, {"file", json_of(file)}});
}

Manifest parse_manifest(std::string_view json, const std::string& name) {
  Manifest manifest;
  read_fields(json, name, fields_of(manifest));
  require_complete(manifest, name);
  return manifest;
}

ShardFile parse_shard_file(std::string_view json, const std::string& name) {
  ShardFile file;
  read_fields(json, name,
              {{"format", JsonText{kShardFormat}},
               {"version", JsonNumber{kVersion}},
               {"file", JsonObject{[&file] { return fields_of(file); }}}});
  require_sound(file, name);
  return file;
}

}  // namespace lockstep::checkpoint
