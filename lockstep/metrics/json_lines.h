// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lockstep/metrics/output_file.h"
#include "lockstep/metrics/sink.h"

namespace lockstep::metrics {

// {"step":12,"time":1700000000.25,"loss":3.5} and a line break. JSON has no infinities and no NaN: they are
// null.
std::string json_line(const Record& record);

// Removes the records of later steps, and a line that was cut off, from such a file, if there is one: a run
// that goes on from an earlier step writes them again.
void drop_records_after(const std::filesystem::path& file, std::int64_t step);

// Whether such a file has a record of the step with a scalar of this name.
bool has_scalar(const std::filesystem::path& file, std::int64_t step, const std::string& name);

// One line for each record, behind what the file has already.
class JsonLinesSink : public MetricsSink {
 public:
  explicit JsonLinesSink(const std::filesystem::path& file);
  void write(const Record& record) override;

 private:
  OutputFile file_;
};

}  // namespace lockstep::metrics
