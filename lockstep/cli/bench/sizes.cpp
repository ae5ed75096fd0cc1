// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/sizes.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::size_t>, 11> kUnits = {{{"", 1},
                                                                              {"B", 1},
                                                                              {"K", std::size_t{1} << 10},
                                                                              {"KB", std::size_t{1} << 10},
                                                                              {"KiB", std::size_t{1} << 10},
                                                                              {"M", std::size_t{1} << 20},
                                                                              {"MB", std::size_t{1} << 20},
                                                                              {"MiB", std::size_t{1} << 20},
                                                                              {"G", std::size_t{1} << 30},
                                                                              {"GB", std::size_t{1} << 30},
                                                                              {"GiB", std::size_t{1} << 30}}};

[[noreturn]] void refuse(std::string_view part, std::string_view expected) {
  throw UsageError(fmt::format("--bytes is {}: expected {}", rendezvous::quote(part), expected));
}

std::size_t parse_size(std::string_view part) {
  constexpr std::string_view kExpected = "sizes such as 4096, 4K or 1M, at most 64G, separated by commas";
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (error != std::errc{}) refuse(part, kExpected);
  const std::string_view unit(end, static_cast<std::size_t>(part.data() + part.size() - end));
  for (const auto& [name, bytes] : kUnits) {
    if (unit != name) continue;
    if (number > kMaxBenchBytes / bytes) refuse(part, kExpected);
    return number * bytes;
  }
  refuse(part, kExpected);
}

struct InUnit {
  std::size_t number;
  std::size_t unit;  // power of 1024
};

// The largest of bytes, KiB, MiB and GiB that gives a whole number.
InUnit in_largest_unit(std::size_t bytes) {
  InUnit result{bytes, 0};
  while (result.number != 0 && result.number % 1024 == 0 && result.unit < 3) {
    result.number /= 1024;
    ++result.unit;
  }
  return result;
}

// The separators in parentheses separate nothing.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++open;
    if (text[i] == ')') --open;
    if (text[i] != separator || open > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void append_range(std::vector<std::size_t>& sizes, std::string_view part) {
  const std::vector<std::string_view> fields = split(part, ':');
  if (fields.size() > 3) refuse(part, "first:last:factor in a range");
  const std::size_t first = parse_size(fields[0]);
  const std::size_t last = parse_size(fields[1]);
  const std::size_t factor = fields.size() == 3 ? parse_size(fields[2]) : 2;
  if (first == 0 || last < first || factor < 2) {
    refuse(part, "0 < first <= last and a factor of at least 2 in a range first:last:factor");
  }
  // The product cannot overflow: it is at most `last`.
  std::size_t size = first;
  sizes.push_back(size);
  while (factor <= last / size) {
    size *= factor;
    sizes.push_back(size);
  }
}

}  // namespace

std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  for (const std::string_view part : split(text, ',')) {
    if (part.find(':') != std::string_view::npos) {
      append_range(sizes, part);
    } else {
      sizes.push_back(parse_size(part));
    }
    if (sizes.size() > kMaxBenchSizes) {
      throw UsageError(fmt::format("--bytes lists more than {} sizes: use a larger factor or a shorter list",
                                   kMaxBenchSizes));
    }
  }
  return sizes;
}

std::string format_size(std::size_t bytes) {
  const auto [number, unit] = in_largest_unit(bytes);
  return fmt::format("{} {}", number, std::array{"B", "KiB", "MiB", "GiB"}[unit]);
}

std::string short_size(std::size_t bytes) {
  const auto [number, unit] = in_largest_unit(bytes);
  return fmt::format("{}{}", number, std::array{"", "K", "M", "G"}[unit]);
}

std::vector<std::string> split_list(std::string_view text, std::string_view option) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty())
      throw UsageError(
          fmt::format("{} is {}: an entry between its commas is empty", option, rendezvous::quote(text)));
    parts.emplace_back(part);
  }
  return parts;
}

std::vector<int> parse_counts(std::string_view text, std::string_view option, int least, int most) {
  std::vector<int> counts;
  for (const std::string& part : split_list(text, option)) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), counts.emplace_back());
    const bool whole = error == std::errc{} && end == part.data() + part.size();
    if (!whole || counts.back() < least || counts.back() > most) {
      throw UsageError(fmt::format("{} is {}: expected whole numbers from {} to {}, separated by commas",
                                   option, rendezvous::quote(text), least, most));
    }
  }
  return counts;
}

}  // namespace lockstep::cli
