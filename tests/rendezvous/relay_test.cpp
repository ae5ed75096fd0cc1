// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/relay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep::rendezvous {
namespace {

using transport::Descriptor;

class OutletToAPipe : public ::testing::Test {
 protected:
  OutletToAPipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    reader_ = Descriptor(ends[0]);
    writer_ = Descriptor(ends[1]);
    ::signal(SIGPIPE, SIG_IGN);
  }

  std::string read_some() const {
    std::string text(1 << 20, 0);
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, ::read(reader_.get(), text.data(), text.size()))));
    return text;
  }

  Descriptor reader_;
  Descriptor writer_;
};

TEST_F(OutletToAPipe, HoldsWhatTheReaderDoesNotTakeAndLosesNothing) {
  Outlet outlet(writer_.get());
  std::string all;
  for (int i = 0; i < 100'000; ++i) all += "line " + std::to_string(i) + "\n";
  outlet.put(all);
  EXPECT_TRUE(outlet.pending());
  EXPECT_FALSE(outlet.has_room());
  EXPECT_EQ(::fcntl(writer_.get(), F_GETFL) & O_NONBLOCK, 0);
  std::string seen;
  while (outlet.pending()) {
    seen += read_some();
    outlet.flush();
  }
  while (seen.size() < all.size()) seen += read_some();
  EXPECT_EQ(seen, all);
}

TEST_F(OutletToAPipe, SaysThatTheReaderIsGone) {
  Outlet outlet(writer_.get());
  reader_ = Descriptor();
  outlet.put("nobody reads this\n");
  EXPECT_EQ(outlet.error(), EPIPE);
  EXPECT_FALSE(outlet.pending());
}

}  // namespace
}  // namespace lockstep::rendezvous
