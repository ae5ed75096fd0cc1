// SPDX-License-Identifier: Apache-2.0
//
// Files that TensorBoard reads. A file is a sequence of records:
//   length u64 | masked CRC32C of the length u32 | data | masked CRC32C of the data u32     (little-endian)
// The data is an Event in protobuf's wire format:
//   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//   Summary { repeated Value value = 1; }     Value { string tag = 1; float simple_value = 2; }
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/metrics/output_file.h"
#include "lockstep/metrics/sink.h"

namespace lockstep::metrics {

// The framing of one record.
std::string tensorboard_record(std::string_view data);

// The event that opens a file, and the event of a step. Unframed.
std::string tensorboard_version_event(double time_s);
std::string tensorboard_event(const Record& record);

// Removes all files of that kind from a folder, if it exists.
void remove_tensorboard_files(const std::filesystem::path& folder);

class TensorBoardSink : public MetricsSink {
 public:
  // A new file events.out.tfevents.SECONDS.HOST.PROCESS in the folder.
  explicit TensorBoardSink(const std::filesystem::path& folder);
  void write(const Record& record) override;
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  TensorBoardSink(const std::filesystem::path& folder, double time_s);
  OutputFile file_;
  double time_s_;
  bool has_version_ = false;  // a reader looks for it first
};

}  // namespace lockstep::metrics
