// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/metaspace_rules.h"

#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;
using Prefix = MetaspaceRules::Prefix;

constexpr std::string_view kMark = "\u2581";

// The value of <0x0A>; hexadecimal digits are capitals.
std::optional<unsigned char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const std::string_view digits = token.substr(3, 2);
  if (digits.find_first_not_of("0123456789ABCDEF") != std::string_view::npos) return std::nullopt;
  unsigned value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return static_cast<unsigned char>(value);
}

class RulesReader {
 public:
  RulesReader(const Json& file, const JsonFields& fields) : file_(file), fields_(fields) {}

  MetaspaceRules read() {
    rules_.bytes.fill(kNoToken);
    const Json* normalizer = JsonFields::optional(file_, "normalizer");
    const Json* pre_tokenizer = JsonFields::optional(file_, "pre_tokenizer");
    if (normalizer != nullptr) read_normalizer(*normalizer);
    if (pre_tokenizer != nullptr) read_pre_tokenizer(*pre_tokenizer);
    if ((normalizer == nullptr) == (pre_tokenizer == nullptr)) {
      fields_.unsupported(normalizer == nullptr ? "byte_fallback without normalizer and pre_tokenizer"
                                                : "a normalizer together with Metaspace");
    }
    read_decoder();
    return rules_;
  }

 private:
  std::string type_of(const Json& stage) const {
    return stage.is_object() ? fields_.text_of(stage, "type", "") : "";
  }

  // The stages of a sequence, or the one that stands alone. Nothing is copied or printed whole: a file may
  // nest deeper than the stack is.
  using Stages = std::vector<const Json*>;
  Stages stages_of(const Json& stage, const char* list) const {
    if (type_of(stage) != "Sequence") return {&stage};
    Stages stages;
    for (const Json& inner : fields_.member(stage, list, Json::value_t::array)) stages.push_back(&inner);
    return stages;
  }

  std::string names_of(const Stages& stages) const {
    std::vector<std::string> names;
    for (const Json* stage : stages) names.push_back(type_of(*stage));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  bool replaces(const Json& stage, std::string_view from, std::string_view to) const {
    if (type_of(stage) != "Replace") return false;
    const Json& pattern = fields_.member(stage, "pattern", Json::value_t::object);
    return fields_.text_of(pattern, "String", "") == from && fields_.text_of(stage, "content", "") == to;
  }

  void read_normalizer(const Json& normalizer) {
    const Stages stages = stages_of(normalizer, "normalizers");
    const bool prepends = !stages.empty() && type_of(*stages.front()) == "Prepend" &&
                          fields_.text_of(*stages.front(), "prepend", "") == kMark;
    rules_.prefix = prepends ? Prefix::always : Prefix::none;
    if (stages.size() != (prepends ? 2U : 1U) || !replaces(*stages.back(), " ", kMark)) {
      fields_.unsupported(
          fmt::format("byte_fallback with a normalizer of {} that is not Prepend and Replace of U+2581",
                      names_of(stages)));
    }
  }

  void read_pre_tokenizer(const Json& stage) {
    if (type_of(stage) != "Metaspace" || fields_.text_of(stage, "replacement", "") != kMark) {
      fields_.unsupported(fmt::format(
          "byte_fallback with the pre_tokenizer '{}' that is not Metaspace by U+2581", type_of(stage)));
    }
    rules_.normalizes = false;
    rules_.split = fields_.flag_of(stage, "split", true);
    const bool adds = fields_.flag_of(stage, "add_prefix_space", true);
    const std::string scheme = fields_.text_of(stage, "prepend_scheme", adds ? "always" : "never");
    if (scheme == "always" && adds) {
      rules_.prefix = Prefix::where_missing;
    } else if (scheme == "first" && adds) {
      rules_.prefix = Prefix::first;
    } else if (scheme == "never") {
      rules_.prefix = Prefix::none;
    } else {
      fields_.unsupported(
          fmt::format("the prepend_scheme '{}' of Metaspace with add_prefix_space {}", scheme, adds));
    }
  }

  void read_decoder() {
    const Json* decoder = JsonFields::optional(file_, "decoder");
    if (decoder == nullptr) fields_.unsupported("byte_fallback without a decoder");
    const Stages stages = stages_of(*decoder, "decoders");
    rules_.strip = stages.size() == 4 && is_strip(*stages[3]);
    const bool good = stages.size() == (rules_.strip ? 4U : 3U) && replaces(*stages[0], kMark, " ") &&
                      type_of(*stages[1]) == "ByteFallback" && type_of(*stages[2]) == "Fuse";
    if (!good) {
      fields_.unsupported(fmt::format(
          "byte_fallback with a decoder of {} that is not Replace of U+2581, ByteFallback, Fuse and perhaps "
          "Strip of one space",
          names_of(stages)));
    }
  }

  bool is_strip(const Json& stage) const {
    const auto is = [&](const char* key, int value) {
      const Json* found = JsonFields::optional(stage, key);
      return found != nullptr && *found == value;
    };
    return type_of(stage) == "Strip" && fields_.text_of(stage, "content", "") == " " && is("start", 1) &&
           is("stop", 0);
  }

  const Json& file_;
  const JsonFields& fields_;
  MetaspaceRules rules_;
};

}  // namespace

MetaspaceRules read_metaspace_rules(const Json& file, const JsonFields& fields) {
  return RulesReader(file, fields).read();
}

std::string metaspace_bytes(const std::string& token) {
  if (const auto byte = byte_of(token)) return std::string(1, static_cast<char>(*byte));
  std::string text = token;
  replace_marks(text);
  return text;
}

void note_token(MetaspaceRules& rules, const std::string& token, Token id) {
  if (const auto byte = byte_of(token)) {
    rules.bytes[*byte] = id;
    return;
  }
  if (token.empty() || token == " ")
    return;  // no text has a space when words are looked up in the file's way
  std::size_t end = 0;
  const char32_t character = next_code_point(token, end);
  if (end == token.size()) rules.characters[token == kMark ? U' ' : character] = id;
}

void replace_marks(std::string& text) {
  std::size_t from = text.find(kMark);
  if (from == std::string::npos) return;
  std::size_t to = from;
  while (from < text.size()) {
    const bool mark = std::string_view(text).substr(from).starts_with(kMark);
    text[to++] = mark ? ' ' : text[from];
    from += mark ? kMark.size() : 1;
  }
  text.resize(to);
}

}  // namespace lockstep::data
