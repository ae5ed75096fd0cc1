// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/config.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view json = input.rest();
  checkpoint::FolderConfig config;
  if (!fuzz::accepts<DataError, UsageError>([&] { config = checkpoint::read_config(json, "config.json"); }))
    return 0;
  fuzz::require(config.model.layers > 0 && config.model.width > 0, "a model has layers and a width");
  fuzz::require(config.special.begin_of_text.value_or(0) < config.model.vocab_size,
                "the begin of a text is a token");
  for (const std::uint32_t end : config.special.ends_of_text) {
    fuzz::require(end < config.model.vocab_size, "the end of a text is a token");
  }
  const checkpoint::FolderConfig again =
      checkpoint::read_config(checkpoint::to_config_json(config), "config.json");
  fuzz::require(again.model == config.model && again.dtype == config.dtype && again.special == config.special,
                "what is written is read");
  return 0;
}
