// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/json_lines.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "lockstep/base/output_file.h"

namespace lockstep::metrics {

std::string json_line(const Record& record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["time"] = record.time_s;
  for (const Scalar& scalar : record.scalars) line[scalar.name] = scalar.value;
  return line.dump() + "\n";
}

void drop_records_after(const std::filesystem::path& file, std::int64_t step) {
  std::ifstream in(file);
  if (!in) return;
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    const bool is_record = record.is_object() && record.value("step", nlohmann::json()).is_number_integer();
    if (is_record && record["step"].get<std::int64_t>() <= step) kept += line + "\n";
  }
  write_atomically(file.string(), kept);
}

JsonLinesSink::JsonLinesSink(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

void JsonLinesSink::write(const Record& record) {
  file_.write(json_line(record));
}

}  // namespace lockstep::metrics
