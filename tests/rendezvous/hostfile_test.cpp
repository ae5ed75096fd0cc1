// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/hostfile.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::rendezvous {
namespace {

using test::error_of;

TEST(Hostfile, ReadsHostsSlotsCommentsAndBlankLines) {
  const auto hosts =
      parse_hostfile("# cluster\n\nnode1 slots=8\r\n  node2\tslots=4  # half\n10.0.0.3\n", "h");
  EXPECT_EQ(hosts, (std::vector<HostSlots>{{"node1", 8}, {"node2", 4}, {"10.0.0.3", 1}}));
  EXPECT_EQ(total_slots(hosts), 13);
}

TEST(Hostfile, NeedsNoFinalNewline) {
  EXPECT_EQ(parse_hostfile("a\nb slots=2", "h"), (std::vector<HostSlots>{{"a", 1}, {"b", 2}}));
}

struct BadHostfile {
  const char* text;
  const char* message;
};

TEST(Hostfile, NamesFileAndLineOfEveryMistake) {
  const BadHostfile cases[] = {
      {"", "h: no host in the file: write a line such as `node1 slots=4` for each one"},
      {"# only a comment\n", "h: no host in the file: write a line such as `node1 slots=4` for each one"},
      {"a\nb slots=zero\n", "h:2: slots is 'zero': expected a whole number from 1 to 4096"},
      {"a slots=0", "h:1: slots is '0': expected a whole number from 1 to 4096"},
      {"a slots=", "h:1: slots is '': expected a whole number from 1 to 4096"},
      {"a\n\nb 8\n", "h:3: '8' is not understood after the host: expected 'slots=N' once"},
      {"a slots=1 slots=2", "h:1: 'slots=2' is not understood after the host: expected 'slots=N' once"},
      {"a\nb\na slots=3",
       "h:3: host a is already on line 1: keep one of the two lines, with all of its slots"},
      {"a;reboot\n",
       "h:1: 'a;reboot' is not a host name or address: expected at most 255 letters, digits, '.', '_', '-' "
       "or "
       "':'"},
      {"a slots=4096\nb slots=2\n",
       "h:2: the hosts up to here have 4098 slots, but a world has at most 4096: lower their slots or leave "
       "out "
       "hosts"},
  };
  for (const BadHostfile& bad : cases) {
    EXPECT_EQ(error_of<UsageError>([&] { parse_hostfile(bad.text, "h"); }), bad.message);
  }
}

TEST(Hostfile, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(error_of<UsageError>([] { load_hostfile("/nonexistent/hosts"); }),
            "cannot read the host file /nonexistent/hosts: No such file or directory; it has a line such as "
            "`node1 slots=4` for each host");
}

TEST(Hostfile, RefusesAFileThatIsTooLong) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("hosts", std::string(2 << 20, '#'));
  EXPECT_EQ(error_of<UsageError>([&] { load_hostfile(path); }),
            "host file " + path +
                " is longer than 1048576 bytes: name one with a line such as `node1 slots=4` for each host");
}

}  // namespace
}  // namespace lockstep::rendezvous
