// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/failpoint_rule.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint_table.h"
#include "lockstep/base/suggest.h"

namespace lockstep::failpoint {
namespace {

constexpr std::size_t kMostRules = 256;
constexpr std::int64_t kMostMilliseconds = 3'600'000;
constexpr std::int64_t kMostCode = 255;
constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max();

struct ActionName {
  std::string_view name;
  Action action;
  std::int64_t most = -1;  // of its argument; negative: it has none
  Medium needs = Medium::none;
};
constexpr ActionName kActions[] = {
    {"kill", Action::kill},
    {"stop", Action::stop},
    {"exit", Action::exit, kMostCode},
    {"sleep", Action::sleep, kMostMilliseconds},
    {"throw", Action::throw_error},
    {"enospc", Action::disk_full, -1, Medium::disk},
    {"eio", Action::disk_broken, -1, Medium::disk},
    {"corrupt", Action::corrupt, kMostCount, Medium::values},
};

[[noreturn]] void refuse(std::string_view rule, const std::string& why) {
  throw UsageError(
      fmt::format("the failpoint rule '{}' {}: expected NAME@CONDITION,...:ACTION, as in "
                  "checkpoint.begun@rank=1,step=7:kill",
                  printable_name(rule), why));
}

template <typename Table>
std::vector<std::string> names_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

// The part before the separator, which is taken off with it; all of it when there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::int64_t number(std::string_view text, std::int64_t least, std::int64_t most, std::string_view rule) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(rule, fmt::format("has '{}' where a whole number from {} to {} belongs", printable_name(text),
                             least, most));
  }
  return value;
}

void read_condition(std::string_view text, Rule& rule, std::string_view whole) {
  static const std::vector<std::string> kConditions = {"rank", "step", "hit", "once"};
  std::string_view value = text;
  const std::string_view name = take_until(value, '=');
  if (std::ranges::find(kConditions, name) == kConditions.end()) {
    refuse_name("condition of a failpoint", name, kConditions);
  }
  if (name == "rank") {
    rule.rank = number(value, 0, std::numeric_limits<int>::max(), whole);
  } else if (name == "step") {
    rule.step = number(value, 0, kMostCount, whole);
  } else if (name == "hit") {
    rule.hit = number(value, 1, kMostCount, whole);
  } else if (value.empty()) {
    refuse(whole, "names no file after once=");
  } else {
    rule.once = value;
  }
}

// "sleep(200)", "kill".
void read_action(std::string_view text, Rule& rule, std::string_view whole) {
  const std::size_t open = std::min(text.find('('), text.size());
  const std::string_view name = text.substr(0, open);
  const auto* const known = std::ranges::find(kActions, name, &ActionName::name);
  if (known == std::end(kActions)) refuse_name("action of a failpoint", name, names_in(kActions));
  const bool has_argument = open < text.size();
  if (has_argument != (known->most >= 0) || (has_argument && !text.ends_with(')'))) {
    refuse(whole, known->most >= 0 ? fmt::format("needs a number, as in {}(7)", name)
                                   : fmt::format("has something behind {}", name));
  }
  if (has_argument) {
    rule.argument = number(text.substr(open + 1, text.size() - open - 2), 0, known->most, whole);
  }
  if (known->needs != Medium::none && kPoints[rule.point].medium != known->needs) {
    refuse(whole, fmt::format("asks for {} where {}", name,
                              known->needs == Medium::disk ? "no disk is used" : "there are no values"));
  }
  rule.action = known->action;
}

Rule parse_rule(std::string_view text) {
  Rule rule;
  std::string_view action = text;
  std::string_view conditions = take_until(action, ':');
  const std::string_view name = take_until(conditions, '@');
  if (!is_known(name)) refuse_name("failpoint", name, names_in(kPoints));
  rule.point = index_of(name);
  if (action.empty()) refuse(text, "says no action");
  while (!conditions.empty()) read_condition(take_until(conditions, ','), rule, text);
  read_action(action, rule, text);
  return rule;
}

}  // namespace

std::vector<Rule> parse_rules(std::string_view specification) {
  std::vector<Rule> rules;
  while (!specification.empty()) {
    const std::string_view rule = take_until(specification, ';');
    if (rule.empty()) continue;
    if (rules.size() == kMostRules) {
      throw UsageError(fmt::format("more than {} rules for failpoints", kMostRules));
    }
    rules.push_back(parse_rule(rule));
  }
  return rules;
}

}  // namespace lockstep::failpoint
