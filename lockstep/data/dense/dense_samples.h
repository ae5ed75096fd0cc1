// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/base/mapped_file.h"
#include "lockstep/mesh/range.h"

namespace lockstep::data {

// Samples of a dense matrix: a NumPy file (.npy) of float32, one sample per row, whose last column is the
// number of the sample's class. Safe to use from several threads.
class DenseSamples {
 public:
  // Reads every value once: all are finite, and classes are whole numbers below `classes`. UsageError when
  // the file cannot be opened, DataError naming file and offset when it breaks one of these rules.
  DenseSamples(const std::string& path, std::uint64_t classes);

  std::uint64_t count() const { return count_; }
  std::size_t features() const { return features_; }

  // Fills `out`, of features() elements, with zeros and the given columns of the sample, and returns the
  // class.
  std::int32_t read(std::uint64_t sample, Range columns, std::span<float> out) const;

 private:
  float value(std::uint64_t sample, std::size_t column) const;
  std::uint64_t offset_of(std::uint64_t sample, std::size_t column) const;  // in bytes
  void check_values(std::uint64_t classes) const;

  MappedFile file_;
  std::uint64_t data_offset_ = 0;
  std::uint64_t count_ = 0;
  std::size_t features_ = 0;
};

}  // namespace lockstep::data
