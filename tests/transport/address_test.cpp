// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/address.h"

#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

TEST(Address, ReadsHostsIpv6AndUnixNames) {
  EXPECT_EQ(parse_address("node-1.cluster:29500"), (Address{"node-1.cluster", 29500, ""}));
  EXPECT_EQ(parse_address("127.0.0.1:0"), (Address{"127.0.0.1", 0, ""}));
  EXPECT_EQ(parse_address("[::1]:65535"), (Address{"::1", 65535, ""}));
  EXPECT_EQ(parse_address("@lockstep/run-1"), (Address{"", 0, "lockstep/run-1"}));
}

TEST(Address, PrintsWhatItReads) {
  for (const char* text : {"a:1", "10.0.0.1:29500", "[fe80::1]:7", "@x"}) {
    EXPECT_EQ(parse_address(text).to_string(), text);
  }
}

TEST(Address, RefusesWhatIsMalformed) {
  for (const std::string text :
       {"", "host", "host:", ":1", "host:-1", "host:65536", "host:1x", "host: 1", "ho st:1", "::1:1", "[::1]",
        "[::1]1", "[::1", "[zz]:1", "[]:1", "@", "host:99999999999999999999", "a\nb:1", "h/x:1"}) {
    EXPECT_THROW(parse_address(text), UsageError) << text;
  }
  EXPECT_THROW(parse_address(std::string(254, 'a') + ":1"), UsageError);
  EXPECT_THROW(parse_address("@" + std::string(108, 'a')), UsageError);
  EXPECT_NO_THROW(parse_address("@" + std::string(107, 'a')));
}

TEST(Address, ErrorsSayWhatToWrite) {
  try {
    parse_address("host:99999");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "bad address 'host:99999': the port is not a number from 0 to 65535; write host:port, "
                 "[ipv6]:port or @name");
  }
}

TEST(Address, KnowsLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.9.8.7:1", "[::1]:1", "localhost:1", "@x"}) {
    EXPECT_TRUE(is_loopback(parse_address(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[fe80::1]:1", "node:1", "128.0.0.1:1"}) {
    EXPECT_FALSE(is_loopback(parse_address(text))) << text;
  }
}

}  // namespace
}  // namespace lockstep::transport
