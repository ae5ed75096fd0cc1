// SPDX-License-Identifier: Apache-2.0
//
// Combinations of any shape, compared with their plain twin bit for bit: dtype, operation, divisor, number of
// elements, destinations, then the merges, then the operands' bytes.
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernels/reduce.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::kernels;

namespace {

// As many operands as a valid tree has that begins with these merges.
std::vector<std::uint8_t> valid_merges(fuzz::Input& input, std::size_t operands) {
  std::vector<std::uint8_t> merges;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < operands; ++i) {
    const std::size_t wish = i + 1 == operands ? depth : input.number<std::uint8_t>() % (depth + 1);
    merges.push_back(static_cast<std::uint8_t>(wish));
    depth = depth + 1 - wish;
  }
  return merges;
}

using Buffers = std::vector<std::vector<std::byte>>;

Buffers run(decltype(combine)* function, const Combination& how, const std::vector<std::uint8_t>& merges,
            Buffers buffers, std::size_t destinations, std::size_t elements) {
  std::vector<Operand> operands;
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (i < merges.size()) operands.push_back({.data = buffers[i].data(), .merges = merges[i]});
    if (i < destinations) targets.push_back(buffers[i].data());
  }
  function(how, operands, targets, elements);
  return buffers;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const Combination how = {.dtype = kAllDTypes[input.number<std::uint8_t>() % kAllDTypes.size()],
                           .op = static_cast<ReduceOp>(input.number<std::uint8_t>() % 5),
                           .divide_by = std::size_t{1} + input.number<std::uint8_t>() % 5};
  const std::size_t elements = input.number<std::uint16_t>() % 2500;
  const std::size_t destinations = 1 + input.number<std::uint8_t>() % 4;
  const std::vector<std::uint8_t> merges =
      valid_merges(input, std::size_t{1} + input.number<std::uint8_t>() % 40);
  const ConstBytes pattern = input.take(4096);
  Buffers buffers(std::max(merges.size(), destinations));
  std::size_t at = 0;
  for (auto& buffer : buffers) {
    buffer.resize(elements * size_of(how.dtype));
    for (std::byte& byte : buffer) byte = pattern.empty() ? std::byte{} : pattern[at++ % pattern.size()];
  }
  fuzz::require(run(combine, how, merges, buffers, destinations, elements) ==
                    run(combine_reference, how, merges, buffers, destinations, elements),
                "the fast way has the bits of the plain one");
  return 0;
}
