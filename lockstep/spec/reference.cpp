// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "lockstep/spec/presets.h"
#include "lockstep/spec/toml_value.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

<!-- Made from the table of keys by the program configuration_reference; do not edit. -->

A run file is TOML. Every key below is also a flag, `--section.key value` or `--section.key=value`: a text as it
is, everything else as in TOML, and a list also as `a,b,c`. A flag comes before the file, the file before the
preset of the model, the preset before the default. A file that says otherwise than a preset which is given as a flag
(but for dropout) is refused. Paths are relative to the current folder. An unknown key, a wrong type, a value out of
its range and keys that contradict each other end the program with exit code 2 and a sentence that names the place.
So does a key that others leave without effect (`only with`, `not with`), unless it is set to what it would be anyway.

```toml
[job]
dump_folder = "runs/kjv"
[model]
name = "llama"
layers = 6
width = 384
heads = 6
kv_heads = 2
[data]
train = ["data/kjv", { path = "data/other", weight = 2.0 }]
[training]
steps = 600
```

Presets for `model.preset`: )";

bool holds_corpora(const Key& key) {
  return std::holds_alternative<std::vector<Corpus>>(default_of(key));
}

std::string type_cell(const Key& key) {
  std::string_view type = type_of(key);
  if (holds_corpora(key)) return "list";
  if (type.starts_with("a ")) type.remove_prefix(2);
  return std::string(type);
}

std::string values_of(const Key& key) {
  if (key.name == "preset") return "see above";
  std::string words = (holds_corpora(key) ? "weights " : "") + words_for(key.accepted);
  for (const Condition& condition : key.accepted.only_with) {
    words += fmt::format("{}{} with `{} = {}`", words.empty() ? "" : "; ",
                         condition.other_than ? "not" : "only", condition.key, toml_of(condition));
  }
  return words;
}

std::string row_of(const Key& key) {
  return fmt::format("`{}` | {} | `{}` | {} | {}", key.name, type_cell(key), toml_of(default_of(key)),
                     values_of(key), key.help);
}

}  // namespace

std::string configuration_reference() {
  std::string text(kIntroduction);
  const auto presets = preset_names();
  for (std::size_t at = 0; at < presets.size(); ++at) {
    text += fmt::format("{}`{}`", at == 0 ? "" : ", ", presets[at]);
  }
  text += ".\n";
  std::string_view section;
  for (const Key& key : all_keys()) {
    if (key.section != section) {
      text += fmt::format("\n## [{}]\n\n| key | type | default | values | meaning |\n|---|---|---|---|---|\n",
                          key.section);
      section = key.section;
    }
    text += "| " + row_of(key) + " |\n";
  }
  return text;
}

}  // namespace lockstep::spec
