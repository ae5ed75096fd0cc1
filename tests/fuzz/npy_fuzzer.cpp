// SPDX-License-Identifier: Apache-2.0
//
// The first byte is the version of a header that is made here, so that the fuzzer need not guess its length:
// a line of Python, then the values. With another version the rest is the whole file.
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/data/dense/dense_samples.h"
#include "lockstep/data/dense/npy_header.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

namespace {

std::string file_of(fuzz::Input& input) {
  const auto version = input.number<char>();
  std::string file;
  if (version >= 1 && version <= 3) {
    const std::string_view header = input.line();
    const std::uint64_t length = header.size();
    file = std::string("\x93NUMPY") + version + '\0';
    file.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
    file += header;
  }
  return file.append(input.rest());
}

void read_samples(const std::string& path) {
  constexpr int kClasses = 10;
  const data::DenseSamples samples(path, kClasses);
  std::vector<float> inputs(samples.features());
  for (std::uint64_t i = 0; i < samples.count(); ++i) {
    const std::int32_t label = samples.read(i, {0, samples.features()}, inputs);
    fuzz::require(label >= 0 && label < kClasses, "a sample has a class");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string content = file_of(input);
  fuzz::accepts<DataError>([&] {
    const auto header = data::read_npy_header(std::as_bytes(std::span(content)), "f.npy");
    fuzz::require(header.data_offset <= content.size(), "a header lies within its file");
    const fuzz::MemoryFile file(content);
    read_samples(file.path());
  });
  return 0;
}
