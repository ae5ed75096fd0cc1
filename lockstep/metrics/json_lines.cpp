// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/json_lines.h"

#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>

#include "lockstep/base/output_file.h"

namespace lockstep::metrics {

namespace {

// Lines of the file that are records, as they are.
void for_records(const std::filesystem::path& file,
                 const std::function<void(std::int64_t step, const nlohmann::json& record,
                                          const std::string& line)>& body) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    const bool is_record = record.is_object() && record.value("step", nlohmann::json()).is_number_integer();
    if (is_record) body(record["step"].get<std::int64_t>(), record, line);
  }
}

}  // namespace

std::string json_line(const Record& record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["time"] = record.time_s;
  for (const Scalar& scalar : record.scalars) line[scalar.name] = scalar.value;
  return line.dump() + "\n";
}

void drop_records_after(const std::filesystem::path& file, std::int64_t step) {
  if (!std::ifstream(file)) return;
  std::string kept;
  for_records(file, [&](std::int64_t its, const nlohmann::json& /*record*/, const std::string& line) {
    if (its <= step) kept += line + "\n";
  });
  write_atomically(file.string(), kept);
}

bool has_scalar(const std::filesystem::path& file, std::int64_t step, const std::string& name) {
  bool has_one = false;
  for_records(file, [&](std::int64_t its, const nlohmann::json& record, const std::string& /*line*/) {
    if (its == step && record.contains(name)) has_one = true;
  });
  return has_one;
}

JsonLinesSink::JsonLinesSink(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

void JsonLinesSink::write(const Record& record) {
  file_.write(json_line(record));
}

}  // namespace lockstep::metrics
