// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/comm/link_model.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  fuzz::accepts<UsageError>([&] {
    const comm::LinkModel model = comm::parse_link_model(text, "fuzz");
    fuzz::require(comm::parse_link_model(comm::to_toml(model), "again") == model,
                  "a model survives its text");
  });
  fuzz::accepts<UsageError>([&] {
    const comm::AlgorithmName name = comm::parse_algorithm_name(text);
    fuzz::require(comm::parse_algorithm_name(comm::to_string(name)) == name, "a name survives its text");
  });
  return 0;
}
