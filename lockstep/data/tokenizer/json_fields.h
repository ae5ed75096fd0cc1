// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::data {

// Reads the fields of a tokenizer.json, with errors that name the file. Null and absent are the same
// throughout the format.
class JsonFields {
 public:
  using Json = nlohmann::json;

  // `name` must outlive this object.
  explicit JsonFields(const std::string& name) : name_(name) {}

  [[noreturn]] void corrupt(const std::string& why) const {
    throw DataError(fmt::format("{}: {}", name_, why));
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw UsageError(
        fmt::format("{}: {} is not supported; BPE tokenizers are that work on bytes, such as those of GPT-2, "
                    "LLaMA 3 and Qwen 2, or that were made from sentencepiece, such as those of LLaMA 2",
                    name_, what));
  }

  const Json& member(const Json& object, const char* key, Json::value_t type) const {
    const auto found = object.find(key);
    if (found == object.end() || found->type() != type) {
      corrupt(fmt::format("'{}' is missing or is not of type {}", key, Json(type).type_name()));
    }
    return *found;
  }

  static const Json* optional(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  std::string text_of(const Json& object, const char* key, const std::string& otherwise) const {
    const Json* value = optional(object, key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) corrupt(fmt::format("'{}' is not a string", key));
    return value->get<std::string>();
  }

  bool flag_of(const Json& object, const char* key, bool otherwise) const {
    const Json* value = optional(object, key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) corrupt(fmt::format("'{}' is neither true nor false", key));
    return value->get<bool>();
  }

 private:
  const std::string& name_;
};

}  // namespace lockstep::data
