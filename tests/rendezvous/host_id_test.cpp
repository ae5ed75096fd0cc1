// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/host_id.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

TEST(HostId, EveryPartTellsHostsApart) {
  const HostParts base = {"b1", 7, 3};
  EXPECT_EQ(host_id_of(base), host_id_of(HostParts{"b1", 7, 3}));
  EXPECT_NE(host_id_of(base), host_id_of(HostParts{"b2", 7, 3}));
  EXPECT_NE(host_id_of(base), host_id_of(HostParts{"b1", 8, 3}));
  EXPECT_NE(host_id_of(base), host_id_of(HostParts{"b1", 7, 4}));
}

TEST(HostId, DetectedIdIsValidAndStable) {
  EXPECT_TRUE(is_valid_host_id(detect_host_id())) << detect_host_id();
  EXPECT_EQ(detect_host_id(), detect_host_id());
}

TEST(HostId, ValidatesOverrides) {
  EXPECT_TRUE(is_valid_host_id("rack-7.node_3:a"));
  EXPECT_TRUE(is_valid_host_id(std::string(kMaxHostId, 'a')));
  EXPECT_FALSE(is_valid_host_id(""));
  EXPECT_FALSE(is_valid_host_id("two words"));
  EXPECT_FALSE(is_valid_host_id(std::string(kMaxHostId + 1, 'a')));
}

}  // namespace
}  // namespace lockstep::rendezvous
