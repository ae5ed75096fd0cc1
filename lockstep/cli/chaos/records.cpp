// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/records.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

// `take` gets the object of each whole line.
void for_each_line(std::string_view text, const std::string& file, auto take) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    try {
      take(Json::parse(text.substr(0, end)));
    } catch (const Json::exception& error) {
      throw DataError(fmt::format("{}:{} is no record of a run: {}", file, number, error.what()));
    }
    text.remove_prefix(end + 1);
  }
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// JSON has no number for a loss that is not finite; null takes its place.
std::optional<double> loss_of(const Json& line) {
  const auto loss = line.find("loss");
  if (loss == line.end()) return std::nullopt;
  return loss->is_null() ? std::numeric_limits<double>::quiet_NaN() : loss->get<double>();
}

// A line is shorter.
constexpr std::streamoff kLine = 1 << 14;

}  // namespace

std::vector<StepRecord> parse_steps(std::string_view text, const std::string& file) {
  std::vector<StepRecord> records;
  for_each_line(text, file, [&](const Json& line) {
    records.push_back({.step = line.at("step"),
                       .time_s = line.at("time"),
                       .step_s = line.at("step_s"),
                       .loss = loss_of(line)});
  });
  return records;
}

std::vector<GenerationRecord> parse_generations(std::string_view text, const std::string& file) {
  std::vector<GenerationRecord> records;
  for_each_line(text, file, [&](const Json& line) {
    records.push_back({line.at("time"), line.at("event"), line.at("step")});
  });
  return records;
}

std::vector<StepRecord> read_steps(const std::filesystem::path& file) {
  return parse_steps(text_of(file), file.string());
}

std::vector<GenerationRecord> read_generations(const std::filesystem::path& file) {
  return parse_generations(text_of(file), file.string());
}

std::optional<StepRecord> first_step(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || in.eof()) return std::nullopt;
  return parse_steps(line + "\n", file.string()).front();
}

std::optional<StepRecord> last_step(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : 0;
  in.seekg(std::max<std::streamoff>(0, size - kLine));
  const std::string tail(std::istreambuf_iterator<char>(in), {});
  const std::size_t end = tail.rfind('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return parse_steps(tail.substr(begin, end + 1 - begin), file.string()).front();
}

}  // namespace lockstep::cli
