// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/store/blocks.h"
#include "lockstep/checkpoint/store/reader.h"

namespace lockstep::checkpoint {
namespace {

// Numbers go in as 8 bytes, little-endian as the machine's; texts and lists behind their length.
class Digest {
 public:
  template <typename T>
  void add(T number) {
    static_assert(sizeof(T) == 8);
    hasher_.add(as_bytes_of(number));
  }
  void add(double value) {
    // A manifest does not tell one that is not a number from another.
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    add(std::bit_cast<std::uint64_t>(value));
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    hasher_.add(std::as_bytes(std::span(text)));
  }
  void add(const std::vector<std::int64_t>& numbers) {
    add(std::uint64_t{numbers.size()});
    for (const std::int64_t number : numbers) add(number);
  }
  void add(std::span<const float> values) { hasher_.add(std::as_bytes(values)); }
  Hash value() const { return hasher_.value(); }

 private:
  Hasher hasher_;
};

void add(const Progress& progress, Digest& digest) {
  digest.add(progress.step);
  digest.add(progress.data_position);
  digest.add(progress.bad_steps);
  digest.add(progress.bad_in_a_row);
  digest.add(progress.loss_scale);
  digest.add(progress.good_steps);
  digest.add(progress.loss);
}

}  // namespace

Hash logical_hash(Checkpoint& checkpoint) {
  Digest digest;
  add(checkpoint.manifest().progress, digest);
  digest.add(std::uint64_t{checkpoint.manifest().tensors.size()});
  std::vector<float> block(kBlockBytes / sizeof(float));
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    digest.add(std::string_view(tensor.name));
    digest.add(tensor.shape);
    const std::size_t elements = tensor.elements();
    for (std::size_t at = 0; at < elements; at += block.size()) {
      const Range range = {at, std::min(at + block.size(), elements)};
      const std::span<float> values = std::span(block).first(range.size());
      checkpoint.read(tensor.name, range, values);
      digest.add(std::span<const float>(values));
    }
  }
  return digest.value();
}

}  // namespace lockstep::checkpoint
