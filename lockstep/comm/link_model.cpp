// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/link_model.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr double kMost = 1e9;
constexpr double kLeastRate = 1e-6;

constexpr std::string_view kMpiSection = "comm.model.mpi";
constexpr std::size_t kFields = 10;

// Where each value is kept and what it may be.
struct Field {
  std::string_view section;
  std::string_view key;
  double& value;
  double least;
};

std::array<Field, kFields> fields_of(LinkModel& model, Link& mpi) {
  return {{{"comm.model", "add_gigabytes_per_second", model.add_gigabytes_per_second, kLeastRate},
           {"comm.model.memory", "latency_us", model.memory.latency_us, 0},
           {"comm.model.memory", "message_us", model.memory.message_us, 0},
           {"comm.model.memory", "gigabytes_per_second", model.memory.gigabytes_per_second, kLeastRate},
           {"comm.model.network", "latency_us", model.network.latency_us, 0},
           {"comm.model.network", "message_us", model.network.message_us, 0},
           {"comm.model.network", "gigabytes_per_second", model.network.gigabytes_per_second, kLeastRate},
           {kMpiSection, "latency_us", mpi.latency_us, 0},
           {kMpiSection, "message_us", mpi.message_us, 0},
           {kMpiSection, "gigabytes_per_second", mpi.gigabytes_per_second, kLeastRate}}};
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

class Parser {
 public:
  explicit Parser(std::string_view name) : name_(name) {}

  void take_line(std::string_view line) {
    ++line_;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) return;
    if (line.front() == '[' && line.back() == ']') {
      section_ = line.substr(1, line.size() - 2);
      has_mpi_ = has_mpi_ || section_ == kMpiSection;
      return;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) refuse("expected [section] or key = number");
    set(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
  }

  LinkModel finish() {
    const auto fields = fields_of(model_, mpi_);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (seen_[i] || (fields[i].section == kMpiSection && !has_mpi_)) continue;
      throw UsageError(
          fmt::format("{}: {} is missing in [{}]: let `lockstep bench collectives --tune` write "
                      "the whole model",
                      name_, fields[i].key, fields[i].section));
    }
    if (has_mpi_) model_.mpi = mpi_;
    return model_;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw UsageError(fmt::format("{}:{}: {}", name_, line_, why));
  }

  void set(std::string_view key, std::string_view text) {
    const auto fields = fields_of(model_, mpi_);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      if (field.section != section_ || field.key != key) continue;
      if (std::exchange(seen_[i], true)) refuse(fmt::format("{} is there twice", field.key));
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      // Written so that a value that is not a number fails it too.
      const bool in_range = value >= field.least && value <= kMost;
      if (error != std::errc() || end != text.data() + text.size() || !in_range) {
        refuse(fmt::format("{} must be a number from {} to {}", field.key, field.least, kMost));
      }
      field.value = value;
      return;
    }
    refuse("a link model has no such key in this section");
  }

  std::string_view name_;
  int line_ = 0;
  std::string_view section_;
  LinkModel model_;
  bool has_mpi_ = false;
  Link mpi_;
  std::array<bool, kFields> seen_ = {};
};

}  // namespace

LinkModel over_mpi(LinkModel model) {
  model.network = model.mpi.value_or(model.network);
  return model;
}

std::string to_toml(const LinkModel& model) {
  LinkModel copy = model;
  Link mpi = model.mpi.value_or(Link{});
  std::string text;
  std::string_view section;
  for (const Field& field : fields_of(copy, mpi)) {
    if (field.section == kMpiSection && !model.mpi) continue;
    if (field.section != section) text += fmt::format("[{}]\n", field.section);
    section = field.section;
    text += fmt::format("{} = {}\n", field.key, field.value);
  }
  return text;
}

LinkModel parse_link_model(std::string_view text, std::string_view name) {
  Parser parser(name);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    parser.take_line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parser.finish();
}

LinkModel load_link_model(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    throw UsageError(fmt::format("cannot read the link model {}: check that it is a file of yours", path));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    throw UsageError(fmt::format("{} has more than {} bytes, so it is no link model", path, kMaxFileBytes));
  }
  return parse_link_model(text, path);
}

}  // namespace lockstep::comm
