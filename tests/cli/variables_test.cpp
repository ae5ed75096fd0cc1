// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/variables.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

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

// Those that stand between quotes. By hand: GCC 12 warns of <regex> when it compiles for the sanitizers.
std::set<std::string> variables_in(const std::string& text) {
  const std::string begin = "\"LOCKSTEP_";
  std::set<std::string> found;
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
    const std::size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at + 1);
    if (end != text.npos && text[end] == '"' && end > at + begin.size())
      found.insert(text.substr(at + 1, end - at - 1));
  }
  return found;
}

TEST(Variables, AreThoseThatTheSourcesName) {
  std::set<std::string> named;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCES)) {
    const std::filesystem::path& path = entry.path();
    if ((path.extension() != ".cpp" && path.extension() != ".h") || path.stem() == "variables") continue;
    named.merge(variables_in(test::read_file(path)));
  }
  const std::vector<std::string> known = known_variables();
  EXPECT_EQ(named, std::set<std::string>(known.begin(), known.end()));
}

}  // namespace
}  // namespace lockstep::cli
