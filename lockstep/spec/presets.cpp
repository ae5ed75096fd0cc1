// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/presets.h"

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"

namespace lockstep::spec {
namespace {

struct Preset {
  std::string_view name;
  Model model;
};

Model gpt2(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  Model model;
  model.name = ModelFamily::gpt;
  model.layers = layers;
  model.width = width;
  model.heads = heads;
  model.vocab_size = 50257;
  model.max_seq_len = 1024;
  model.norm_eps = 1e-5;
  model.tied_embeddings = true;
  return model;
}

struct LlamaSizes {
  std::int64_t layers, width, heads, kv_heads, ffn_width;
};

Model llama(const LlamaSizes& sizes) {
  Model model;
  model.name = ModelFamily::llama;
  model.layers = sizes.layers;
  model.width = sizes.width;
  model.heads = sizes.heads;
  model.kv_heads = sizes.kv_heads;
  model.ffn_width = sizes.ffn_width;
  return model;
}

Model llama_tiny() {
  Model model = llama({6, 384, 6, 2, 1152});
  model.vocab_size = 8192;
  model.max_seq_len = 1024;
  return model;
}

Model llama_160m() {
  Model model = llama({12, 768, 12, 12, 3072});
  model.vocab_size = 32000;
  model.max_seq_len = 2048;
  model.norm_eps = 1e-6;
  model.tied_embeddings = false;
  return model;
}

Model llama3(const LlamaSizes& sizes) {
  Model model = llama(sizes);
  model.vocab_size = 128256;
  model.max_seq_len = 8192;
  model.rope_theta = 500000.0;
  model.tied_embeddings = false;
  return model;
}

std::array<Preset, 9> all_presets() {
  return {{{"gpt2-124m", gpt2(12, 768, 12)},
           {"gpt2-355m", gpt2(24, 1024, 16)},
           {"gpt2-774m", gpt2(36, 1280, 20)},
           {"gpt2-1.5b", gpt2(48, 1600, 25)},
           {"llama-tiny", llama_tiny()},
           {"llama-160m", llama_160m()},
           {"llama3-8b", llama3({32, 4096, 32, 8, 14336})},
           {"llama3-70b", llama3({80, 8192, 64, 8, 28672})},
           {"llama3-405b", llama3({126, 16384, 128, 8, 53248})}}};
}

}  // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& preset : all_presets()) names.push_back(preset.name);
  return names;
}

Model preset_model(std::string_view name) {
  const auto presets = all_presets();
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const Preset& preset) { return preset.name == name; });
  LOCKSTEP_CHECK(found != presets.end());
  Model model = found->model;
  model.preset = name;
  return model;
}

}  // namespace lockstep::spec
