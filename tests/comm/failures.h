// SPDX-License-Identifier: Apache-2.0
//
// For tests of what callers get when something goes wrong.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::test {

// What the call throws, with its kind in front; "nothing" if it does not throw.
std::string failure_of(const std::function<void()>& call);

// The first `count` (at most 1024) floats of a buffer of the calling thread.
Bytes floats(std::size_t count);

// Ranks as threads over the transport that the test is instantiated for. The group is called "dp".
class OverTransport : public testing::TestWithParam<std::string> {
 protected:
  // A long deadline: what these tests wait for must come from somewhere else, unless they set a short one.
  static void run(int world, const std::function<void(comm::Communicator&)>& body,
                  std::chrono::milliseconds timeout = std::chrono::seconds(60));
};

std::string name_of_transport(const testing::TestParamInfo<std::string>& info);

}  // namespace lockstep::test
