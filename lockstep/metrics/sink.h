// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::metrics {

struct Scalar {
  std::string name;  // "loss", "validation/loss"
  double value = 0.0;
};

// What one step of training has measured.
struct Record {
  std::int64_t step = 0;
  double time_s = 0.0;  // since 1970
  std::vector<Scalar> scalars;
};

// Where records go. For one thread; UsageError when they cannot be written, with path and reason. When
// write() returns, the operating system has the whole record.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void write(const Record& record) = 0;
};

}  // namespace lockstep::metrics
