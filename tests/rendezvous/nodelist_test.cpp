// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/nodelist.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::rendezvous {
namespace {

using Names = std::vector<std::string>;
using test::error_of;

TEST(Nodelist, ExpandsWhatSlurmWrites) {
  EXPECT_EQ(expand_nodelist("n1"), (Names{"n1"}));
  EXPECT_EQ(expand_nodelist("n1,n2.example.org"), (Names{"n1", "n2.example.org"}));
  EXPECT_EQ(expand_nodelist("node[01-04,7],gpu-a[1-2]b"),
            (Names{"node01", "node02", "node03", "node04", "node7", "gpu-a1b", "gpu-a2b"}));
  EXPECT_EQ(expand_nodelist("n[8-11]"), (Names{"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(expand_nodelist("n[098-101]"), (Names{"n098", "n099", "n100", "n101"}));
}

TEST(Nodelist, LastBracketCountsFastest) {
  EXPECT_EQ(expand_nodelist("r[0-1]n[2-3]"), (Names{"r0n2", "r0n3", "r1n2", "r1n3"}));
}

struct BadList {
  const char* text;
  const char* why;
};

TEST(Nodelist, SaysWhereAndWhy) {
  const BadList cases[] = {
      {"", "at character 1: expected a host name"},
      {"a,", "at character 3: expected a host name"},
      {",a", "at character 1: expected a host name"},
      {"a[", "at character 3: expected a number"},
      {"a[]", "at character 3: expected a number"},
      {"a[1", "at character 4: expected ',', '-' or ']'"},
      {"a[1-", "at character 5: expected a number"},
      {"a[1-2", "at character 6: expected ',', '-' or ']'"},
      {"a[1,]", "at character 5: expected a number"},
      {"a[3-1]", "at character 5: the range ends at 1 but begins at 3"},
      {"a[x]", "at character 3: expected a number"},
      {"a]", "at character 2: ']' cannot be part of a host name"},
      {"a b", "at character 2: ' ' cannot be part of a host name"},
      {"a[1-2]$", "at character 7: '$' cannot be part of a host name"},
      {"a[1234567890123456789]", "at character 3: a number has more than 18 digits"},
  };
  for (const BadList& bad : cases) {
    const std::string message = error_of<UsageError>([&] { expand_nodelist(bad.text); });
    EXPECT_TRUE(message.ends_with(bad.why)) << bad.text << " -> " << message;
  }
}

TEST(Nodelist, StopsAtTheLimitsWithoutExpanding) {
  for (const char* bomb :
       {"a[0-999999999999999999]", "a[0-65536]", "a[0-9999]b[0-9999]c[0-9999]d[0-9999]", "a[0-65535],b"}) {
    EXPECT_NE(error_of<UsageError>([&] { expand_nodelist(bomb); }).find("more than 65536 hosts"),
              std::string::npos)
        << bomb;
  }
  EXPECT_EQ(expand_nodelist("a[0-65535]").size(), 65'536u);
  EXPECT_NE(error_of<UsageError>([] { expand_nodelist(std::string(256, 'a')); }).find("longer than 255"),
            std::string::npos);
  EXPECT_EQ(expand_nodelist(std::string(255, 'a')).size(), 1u);
}

// A bracket expression and the names it stands for, made independently of the parser.
struct Written {
  std::string text;
  Names names;
};

Written written_bracket() {
  Written result{"[", {}};
  const int ranges = *rc::gen::inRange(1, 4);
  for (int i = 0; i < ranges; ++i) {
    const int first = *rc::gen::inRange(0, 2000);
    const int last = first + *rc::gen::inRange(0, 12);
    const int width = *rc::gen::inRange(1, 6);
    const std::string begin = fmt::format("{:0{}}", first, width);
    result.text += (i > 0 ? "," : "") + begin;
    if (last > first || *rc::gen::arbitrary<bool>()) result.text += fmt::format("-{:0{}}", last, width);
    for (int n = first; n <= last; ++n) result.names.push_back(fmt::format("{:0{}}", n, begin.size()));
  }
  result.text += "]";
  return result;
}

TEST(NodelistProperty, ExpandingUndoesWriting) {
  EXPECT_TRUE(rc::check("expand(write(names)) == names", [] {
    Written list;
    const int items = *rc::gen::inRange(1, 5);
    for (int i = 0; i < items; ++i) {
      const auto prefix =
          *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcxyz09.-_"))));
      const Written bracket = written_bracket();
      list.text += (i > 0 ? "," : "") + prefix + bracket.text + "x";
      for (const std::string& name : bracket.names) list.names.push_back(prefix + name + "x");
    }
    RC_ASSERT(expand_nodelist(list.text) == list.names);
  }));
}

TEST(NodelistProperty, AnyTextGivesNamesWithinTheLimitsOrAnError) {
  EXPECT_TRUE(rc::check("no crash, no excess", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab019[[]],,--x. \n")));
    try {
      const Names names = expand_nodelist(text, {.max_hosts = 100, .max_name = 20});
      RC_ASSERT(!names.empty());
      RC_ASSERT(names.size() <= 100u);
      for (const std::string& name : names) RC_ASSERT(!name.empty() && name.size() <= 20u);
    } catch (const UsageError&) {
    }
  }));
}

}  // namespace
}  // namespace lockstep::rendezvous
