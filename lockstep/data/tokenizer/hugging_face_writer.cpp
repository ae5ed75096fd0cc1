// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/byte_map.h"
#include "lockstep/data/tokenizer/hugging_face.h"

namespace lockstep::data {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string join(const std::vector<std::string>& lines, const char* indent) {
  return fmt::format("\n{0}{1}", indent, fmt::join(lines, fmt::format(",\n{}", indent)));
}

std::string added_tokens(const BpeModel& model) {
  std::vector<std::string> lines;
  for (const AddedToken& token : model.added) {
    lines.push_back(
        fmt::format(R"({{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, )"
                    R"("normalized": false, "special": {}}})",
                    token.id, quoted(token.text), token.special));
  }
  return join(lines, "    ");
}

std::string pre_tokenizers(const BpeModel& model) {
  std::vector<std::string> lines;
  for (const std::string& pattern : model.patterns) {
    lines.push_back(fmt::format(
        R"({{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated", "invert": false}})",
        quoted(pattern)));
  }
  lines.emplace_back(
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})");
  return join(lines, "      ");
}

// Added tokens stand in the list of their own; the vocabulary is in the order of the ids, as readers expect.
std::string vocabulary(const BpeModel& model) {
  std::vector<bool> is_added(model.tokens.size());
  for (const AddedToken& token : model.added) is_added[token.id] = true;
  std::vector<std::string> lines;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) continue;
    const std::string text = is_added[id] ? model.tokens[id] : to_visible(model.tokens[id]);
    lines.push_back(fmt::format("{}: {}", quoted(text), id));
  }
  return join(lines, "      ");
}

std::string merges(const BpeModel& model) {
  std::vector<std::string> lines;
  for (const Merge& merge : model.merges) {
    lines.push_back(fmt::format("[{}, {}]", quoted(to_visible(model.tokens[merge.left])),
                                quoted(to_visible(model.tokens[merge.right]))));
  }
  return join(lines, "      ");
}

}  // namespace

std::string to_hugging_face(const BpeModel& model) {
  LOCKSTEP_CHECK(!model.metaspace, "only byte-level models are written");
  return fmt::format(
      R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [{}
  ],
  "normalizer": {},
  "pre_tokenizer": {{
    "type": "Sequence",
    "pretokenizers": [{}
    ]
  }},
  "post_processor": null,
  "decoder": {{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": {},
    "vocab": {{{}
    }},
    "merges": [{}
    ]
  }}
}}
)",
      added_tokens(model), model.compose ? R"({"type": "NFC"})" : "null", pre_tokenizers(model),
      model.ignore_merges, vocabulary(model), merges(model));
}

}  // namespace lockstep::data
