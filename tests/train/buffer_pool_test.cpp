// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/buffer_pool.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

// The layers of a model and its last one, which has a norm more, take turns with the same memory.
TEST(BufferPool, SizesThatDifferALittleUseTheSameMemory) {
  constexpr std::size_t kLayer = 25'194'496;
  BufferPool pool{comm::Communicator()};
  comm::Buffer layer = pool.take(kLayer);
  EXPECT_GE(layer.bytes().size(), kLayer);
  const std::byte* const memory = layer.bytes().data();
  pool.give_back(std::move(layer));
  comm::Buffer last = pool.take(kLayer + 4096);
  EXPECT_EQ(last.bytes().data(), memory);
  EXPECT_GE(last.bytes().size(), kLayer + 4096);
  EXPECT_LE(last.bytes().size(), kLayer + kLayer / 8);
  EXPECT_NE(pool.take(kLayer).bytes().data(), memory) << "it is in use";
  pool.give_back(std::move(last));
  EXPECT_NE(pool.take(2 * kLayer).bytes().data(), memory) << "it is too small";
}

TEST(BufferPool, GivesSmallBuffersToo) {
  BufferPool pool{comm::Communicator()};
  EXPECT_GE(pool.take(1).bytes().size(), 1U);
}

}  // namespace
}  // namespace lockstep::train
