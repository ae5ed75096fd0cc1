// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/variables.h"

#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Variables, ThatNothingReadsAreNamed) {
  EXPECT_THAT(unread_variables({{"LOCKSTEP_RANK", "0"}, {"RENK", "0"}, {"PATH", "/bin"}}), IsEmpty());
  EXPECT_THAT(unread_variables({{"LOCKSTEP_RENK", "0"}, {"LOCKSTEP_UNRELATED_THING", "1"}}),
              ElementsAre("LOCKSTEP_RENK is set, but nothing reads it: did you mean 'LOCKSTEP_RANK'?",
                          "LOCKSTEP_UNRELATED_THING is set, but nothing reads it"));
}

TEST(Variables, AreThoseThatTheSourcesName) {
  std::set<std::string> named;
  const std::regex variable("\"(LOCKSTEP_[A-Z0-9_]+)\"");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCES)) {
    const std::filesystem::path& path = entry.path();
    if ((path.extension() != ".cpp" && path.extension() != ".h") || path.stem() == "variables") continue;
    const std::string text = test::read_file(path);
    for (std::sregex_iterator match(text.begin(), text.end(), variable), end; match != end; ++match)
      named.insert((*match)[1]);
  }
  const std::vector<std::string> known = known_variables();
  EXPECT_EQ(named, std::set<std::string>(known.begin(), known.end()));
}

}  // namespace
}  // namespace lockstep::cli
