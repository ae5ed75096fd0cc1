// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "lockstep/spec/key.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

TEST(Table, NamesEveryKeyOnceAndKeepsSectionsTogether) {
  std::set<std::string> names;
  std::set<std::string_view> sections;
  std::string_view section;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
    EXPECT_EQ(find_key(key.full_name()), &key);
    EXPECT_FALSE(key.help.empty()) << key.full_name();
    if (key.section != section) {
      EXPECT_TRUE(sections.insert(key.section).second) << key.section;
    }
    section = key.section;
  }
}

TEST(Table, HasConditionsThatCanHold) {
  for (const Key& key : all_keys()) {
    const Condition& condition = key.accepted.only_with;
    if (condition.key.empty()) continue;
    const Key* other = find_key(condition.key);
    ASSERT_NE(other, nullptr) << key.full_name();
    EXPECT_EQ(why_refused(*other, std::string(condition.value)), std::nullopt) << key.full_name();
  }
}

// Two rows that reach the same member would show here.
TEST(Table, SetsExactlyTheMemberThatItGets) {
  for (const Key& key : all_keys()) {
    RunSpec run;
    Value changed = default_of(key);
    if (bool* flag = std::get_if<bool>(&changed)) *flag = !*flag;
    if (auto* number = std::get_if<std::int64_t>(&changed)) *number += 1;
    if (auto* number = std::get_if<double>(&changed)) *number += 1.0;
    if (auto* list = std::get_if<std::vector<double>>(&changed)) list->push_back(1.0);
    if (auto* list = std::get_if<std::vector<Corpus>>(&changed)) list->push_back({"a"});
    if (auto* text = std::get_if<std::string>(&changed)) {
      *text = key.accepted.choices.empty() ? "x" : std::string(key.accepted.choices.back());
      if (changed == default_of(key)) *text = std::string(key.accepted.choices.front());
    }
    key.set(run, changed);
    for (const Key& other : all_keys()) {
      EXPECT_EQ(other.get(run), &other == &key ? changed : default_of(other)) << other.full_name();
    }
  }
}

TEST(Table, AcceptsItsOwnDefaults) {
  EXPECT_NO_THROW(parse_run(to_toml(RunSpec{}), "defaults.toml"));
}

TEST(ConfigurationPage, IsMadeFromTheTable) {
  std::ifstream file(LOCKSTEP_CONFIGURATION_PAGE, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, configuration_reference())
      << "make it again: configuration_reference > docs/configuration.md";
}

}  // namespace
}  // namespace lockstep::spec
