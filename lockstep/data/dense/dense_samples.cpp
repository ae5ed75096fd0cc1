// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/dense/dense_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/bad_file.h"
#include "lockstep/data/dense/npy_header.h"

namespace lockstep::data {

DenseSamples::DenseSamples(const std::string& path, std::uint64_t classes) : file_(path) {
  const NpyHeader header = read_npy_header(file_.bytes(), path);
  const std::uint64_t values = (file_.size() - header.data_offset) / sizeof(float);
  if (header.columns < 2) {
    bad_file(path, 0,
             fmt::format("{} columns are too few: one of inputs and one of classes", header.columns));
  }
  if (header.rows == 0) bad_file(path, 0, "there is no sample in it");
  // Divided, because a product of two numbers of the file may not fit into 64 bits.
  const bool fits = header.rows == values / header.columns && values % header.columns == 0 &&
                    (file_.size() - header.data_offset) % sizeof(float) == 0;
  if (!fits) {
    bad_file(path, file_.size(),
             fmt::format("the file ends here, but its header describes {} rows of {} columns", header.rows,
                         header.columns));
  }
  data_offset_ = header.data_offset;
  count_ = header.rows;
  features_ = header.columns - 1;
  check_values(classes);
}

std::int32_t DenseSamples::read(std::uint64_t sample, Range columns, std::span<float> out) const {
  LOCKSTEP_CHECK(sample < count_ && columns.end <= features_ && out.size() == features_,
                 "a sample that does not fit");
  file_.require_whole();
  std::fill(out.begin(), out.end(), 0.0F);
  std::memcpy(out.data() + columns.begin, file_.bytes().data() + offset_of(sample, columns.begin),
              columns.size() * sizeof(float));
  return static_cast<std::int32_t>(value(sample, features_));
}

// Headers of other lengths than NumPy's leave values unaligned.
float DenseSamples::value(std::uint64_t sample, std::size_t column) const {
  float result = 0.0F;
  std::memcpy(&result, file_.bytes().data() + offset_of(sample, column), sizeof result);
  return result;
}

std::uint64_t DenseSamples::offset_of(std::uint64_t sample, std::size_t column) const {
  return data_offset_ + (sample * (features_ + 1) + column) * sizeof(float);
}

void DenseSamples::check_values(std::uint64_t classes) const {
  for (std::uint64_t sample = 0; sample < count_; ++sample) {
    for (std::size_t column = 0; column <= features_; ++column) {
      if (const float found = value(sample, column); !std::isfinite(found)) {
        bad_file(file_.path(), offset_of(sample, column),
                 fmt::format("column {} of sample {} is {}", column, sample, found));
      }
    }
    const float found = value(sample, features_);
    if (found < 0 || found >= static_cast<double>(classes) || found != std::floor(found)) {
      bad_file(file_.path(), offset_of(sample, features_),
               fmt::format("the last column of sample {} is {}: no class from 0 to {}", sample, found,
                           classes - 1));
    }
  }
}

}  // namespace lockstep::data
