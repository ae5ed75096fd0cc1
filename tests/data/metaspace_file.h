// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep::data::testing {

// Shaped like the files that LLaMA 2 models come with. Byte b is token 3 + b.
inline nlohmann::json metaspace_file() {
  using nlohmann::json;
  json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int next = 259;
  for (const char* token :
       {"\u2581", "t", "h", "e", "a", "\u2581t", "he", "\u2581the", "\u2581\u2581", "\u00e9"}) {
    vocabulary[token] = next++;
  }
  json added = json::array();
  for (const char* token : {"<unk>", "<s>", "</s>"}) {
    added.push_back(
        {{"id", vocabulary[token]}, {"content", token}, {"normalized", false}, {"special", true}});
  }
  const auto replace = [](const char* from, const char* to) -> json {
    return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace(" ", "\u2581")}}}},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {replace("\u2581", " "),
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocabulary},
            {"merges", {"\u2581 t", "h e", "\u2581t he", "\u2581 \u2581"}}}}};
}

}  // namespace lockstep::data::testing
