// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/shard_rule.h"

#include <algorithm>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
    return false;
  }
  const std::string_view number = name.substr(star, name.size() - before.size() - after.size());
  return std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const ShardRule& rule_of(std::span<const ShardRule> rules, std::string_view parameter) {
  const ShardRule* found = nullptr;
  for (const ShardRule& rule : rules) {
    if (!matches(rule.name, parameter)) continue;
    LOCKSTEP_CHECK(found == nullptr, "two shard rules for " + std::string(parameter));
    found = &rule;
  }
  LOCKSTEP_CHECK(found != nullptr, "no shard rule for " + std::string(parameter));
  return *found;
}

}  // namespace lockstep::model
