// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/json_lines.h"

#include <nlohmann/json.hpp>

namespace lockstep::metrics {

std::string json_line(const Record& record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["time"] = record.time_s;
  for (const Scalar& scalar : record.scalars) line[scalar.name] = scalar.value;
  return line.dump() + "\n";
}

JsonLinesSink::JsonLinesSink(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

void JsonLinesSink::write(const Record& record) {
  file_.write(json_line(record));
}

}  // namespace lockstep::metrics
