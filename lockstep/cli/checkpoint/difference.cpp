// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/checkpoint/difference.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/checkpoint/progress_values.h"
#include "lockstep/cli/checkpoint/text.h"
#include "lockstep/cli/printable.h"

namespace lockstep::cli {
namespace {

using checkpoint::Checkpoint;
using checkpoint::LogicalTensor;

constexpr std::string_view kNone = "none";
constexpr std::size_t kElementsAtOnce = std::size_t{1} << 18;

using Keys = std::map<std::string, std::string>;

// "section.key" -> value, of a text as spec::to_toml() writes it.
Keys keys_of(std::string_view configuration) {
  Keys keys;
  std::string section;
  while (!configuration.empty()) {
    const std::size_t end = std::min(configuration.find('\n'), configuration.size());
    const std::string_view line = configuration.substr(0, end);
    configuration.remove_prefix(std::min(end + 1, configuration.size()));
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[') && line.ends_with(']')) {
      section = std::string(line.substr(1, line.size() - 2)) + ".";
    } else if (equals != line.npos) {
      keys[section + std::string(line.substr(0, equals))] = line.substr(equals + 3);
    }
  }
  return keys;
}

std::string place_text(std::size_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    place[dim] = static_cast<std::int64_t>(element % static_cast<std::size_t>(shape[dim]));
    element /= static_cast<std::size_t>(shape[dim]);
  }
  return shape_text(place);
}

std::optional<Difference> first_difference(const LogicalTensor& tensor, Checkpoint& first,
                                           Checkpoint& second) {
  const std::size_t elements = tensor.elements();
  std::vector<float> a(std::min(elements, kElementsAtOnce));
  std::vector<float> b(a.size());
  for (std::size_t at = 0; at < elements; at += a.size()) {
    const Range range = {at, std::min(at + a.size(), elements)};
    first.read(tensor.name, range, std::span(a).first(range.size()));
    second.read(tensor.name, range, std::span(b).first(range.size()));
    for (std::size_t i = 0; i < range.size(); ++i) {
      if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
      return Difference{fmt::format("tensor {}, element {} {}", printable(tensor.name), at + i,
                                    place_text(at + i, tensor.shape)),
                        fmt::format("{}", a[i]), fmt::format("{}", b[i])};
    }
  }
  return std::nullopt;
}

// A tensor that at least one of them has.
std::optional<Difference> tensor_difference(const std::string& name, Checkpoint& first, Checkpoint& second) {
  const auto shape_in = [&](const Checkpoint& checkpoint) {
    return checkpoint.has(name) ? shape_text(checkpoint.tensor(name).shape) : std::string(kNone);
  };
  if (shape_in(first) != shape_in(second)) {
    return Difference{fmt::format("shape of tensor {}", printable(name)), shape_in(first), shape_in(second)};
  }
  return first_difference(first.tensor(name), first, second);
}

void compare(const std::string& what, const std::string& first, const std::string& second,
             std::vector<Difference>& found) {
  if (first != second) found.push_back({what, printable(first), printable(second)});
}

// Where a run is and how it was started, which two runs never have in common.
bool names_the_run(const std::string& key) {
  return key.starts_with("job.") || key == "checkpoint.resume";
}

// Lanes decide about bits, whoever computes them.
bool is_of_layout(std::string_view key) {
  if (key == "parallelism.lanes" || key == "parallelism.tensor_lanes") return false;
  return key.starts_with("parallelism.") || key.starts_with("zero.") || key.starts_with("elastic.") ||
         key == "training.threads";
}

std::vector<Difference> those(const std::vector<Difference>& differences, bool of_layout) {
  std::vector<Difference> found;
  std::ranges::copy_if(differences, std::back_inserter(found),
                       [&](const Difference& one) { return one.of_layout == of_layout; });
  return found;
}

std::string lines_of(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& difference : differences) {
    text += fmt::format("  {}: {} and {}\n", difference.what, difference.first, difference.second);
  }
  return text;
}

Json list_of(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& difference : differences) {
    list.push_back({{"what", difference.what}, {"first", difference.first}, {"second", difference.second}});
  }
  return list;
}

}  // namespace

std::vector<Difference> configuration_differences(const std::string& first, const std::string& second) {
  std::vector<Difference> found;
  const Keys a = keys_of(first);
  const Keys b = keys_of(second);
  const auto value_of = [](const Keys& keys, const std::string& key) {
    const auto place = keys.find(key);
    return place == keys.end() ? std::string(kNone) : place->second;
  };
  Keys both = a;
  both.insert(b.begin(), b.end());
  for (const auto& [key, value] : both) {
    if (names_the_run(key)) continue;
    const std::size_t before = found.size();
    compare("configuration " + printable(key), value_of(a, key), value_of(b, key), found);
    if (found.size() > before) found.back().of_layout = is_of_layout(key);
  }
  if (a == b && first != second) found.push_back({"text of the configuration", "one", "another"});
  return found;
}

std::vector<Difference> differences_between(Checkpoint& first, Checkpoint& second) {
  std::vector<Difference> found;
  std::set<std::string> names;
  for (const Checkpoint* checkpoint : {&first, &second}) {
    for (const LogicalTensor& tensor : checkpoint->manifest().tensors) names.insert(tensor.name);
  }
  for (const std::string& name : names) {
    if (auto difference = tensor_difference(name, first, second)) found.push_back(*std::move(difference));
  }
  const checkpoint::Manifest& a = first.manifest();
  const checkpoint::Manifest& b = second.manifest();
  const auto progress = progress_values(b.progress);
  for (std::size_t i = 0; const auto& [name, value] : progress_values(a.progress)) {
    compare("progress." + name, value, progress[i++].second, found);
  }
  compare("lanes", std::to_string(a.lanes), std::to_string(b.lanes), found);
  compare("tensor_lanes", std::to_string(a.tensor_lanes), std::to_string(b.tensor_lanes), found);
  compare("data_digest", a.data_digest, b.data_digest, found);
  compare("tokenizer_digest", a.tokenizer_digest, b.tokenizer_digest, found);
  const auto keys = configuration_differences(a.configuration, b.configuration);
  found.insert(found.end(), keys.begin(), keys.end());
  return found;
}

bool are_equal(const std::vector<Difference>& differences) {
  return std::ranges::all_of(differences, &Difference::of_layout);
}

std::string difference_text(const std::vector<Difference>& differences, const Checkpoint& first) {
  const std::vector<Difference> found = those(differences, false);
  const std::vector<Difference> layout = those(differences, true);
  std::string text = found.empty() ? fmt::format("equal: {} tensors, progress and configuration\n",
                                                 first.manifest().tensors.size())
                                   : fmt::format("different in {} places\n", found.size()) + lines_of(found);
  if (!layout.empty()) text += "on other layouts, which change no value\n" + lines_of(layout);
  return text;
}

std::string difference_json(const std::vector<Difference>& differences) {
  return json_line({{"equal", are_equal(differences)},
                    {"differences", list_of(those(differences, false))},
                    {"layout", list_of(those(differences, true))}});
}

}  // namespace lockstep::cli
