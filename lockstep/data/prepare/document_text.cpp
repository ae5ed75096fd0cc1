// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/document_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/bad_file.h"
#include "lockstep/data/tokenizer/json_reason.h"
#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

std::string name_of(const Input& input) {
  return input.path == "-" ? "standard input" : input.path;
}

std::string json_text(const Piece& piece, const std::string& key) {
  const auto bad_line = [&](const std::string& why) {
    return DataError(fmt::format("{} line {}: {}", name_of(*piece.input), piece.place, why));
  };
  try {
    Json document = Json::parse(piece.content);
    const auto found = document.is_object() ? document.find(key) : document.end();
    if (found == document.end() || !found->is_string()) {
      throw bad_line(fmt::format("no string is under the key '{}'; --json-key names another", key));
    }
    return std::move(found->get_ref<std::string&>());
  } catch (const Json::parse_error& error) {
    const std::size_t byte = std::min(error.byte, piece.content.size());
    throw bad_line(fmt::format("this is not valid JSON from byte {} of the line on", byte));
  } catch (const Json::exception& error) {
    throw bad_line(json_reason(error));  // such as a number that no double can be
  }
}

}  // namespace

std::string text_of(Piece piece, const std::string& json_key) {
  if (piece.input->format == InputFormat::jsonl) return json_text(piece, json_key);
  const std::size_t valid = valid_utf8_prefix(piece.content);
  if (valid < piece.content.size()) {
    bad_file(
        name_of(*piece.input), piece.place + valid,
        fmt::format("the byte 0x{:02X} is not valid UTF-8 here; convert the text, for example with iconv",
                    static_cast<unsigned char>(piece.content[valid])));
  }
  return std::move(piece.content);
}

}  // namespace lockstep::data
