// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/hugging_face/json_file.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/data/tokenizer/json_reason.h"

namespace lockstep::checkpoint {
namespace {

constexpr int kMaxDepth = 64;  // whoever walks the value may recurse

}  // namespace

nlohmann::json parse_object(std::string_view text, const std::string& name) {
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text, [&](int depth, auto, const auto&) {
      if (depth > kMaxDepth) throw DataError(fmt::format("{}: it is nested deeper than {}", name, kMaxDepth));
      return true;
    });
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: {}", name, data::json_reason(error)));
  }
  if (!value.is_object()) throw DataError(fmt::format("{}: it is not a JSON object", name));
  return value;
}

std::string text_of_file(const std::string& path, std::size_t limit) {
  const MappedFile file(path);
  if (file.size() > limit) {
    throw DataError(
        fmt::format("{}: {} bytes are more than the {} that such a file may have", path, file.size(), limit));
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

}  // namespace lockstep::checkpoint
