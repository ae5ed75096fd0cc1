// SPDX-License-Identifier: Apache-2.0
//
// One suite that every transport passes. A transport's test instantiates it with a way to make a world:
//   INSTANTIATE_TEST_SUITE_P(Loopback, Conformance, testing::Values(TransportUnderTest{...}),
//   transport_name);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

struct TransportUnderTest {
  std::string name;
  // All endpoints of a world in this process, to be used by one thread each.
  std::function<std::vector<std::unique_ptr<Endpoint>>(int world)> make_world;
  // Registered memory of a receiver is written in place: landing() is not always empty.
  bool lands = false;
};

std::string transport_name(const testing::TestParamInfo<TransportUnderTest>& info);

// One rank of a test.
class Participant {
 public:
  Participant(Endpoint& own, const std::atomic<bool>& stop) : endpoint(own), stop_(stop) {}

  Endpoint& endpoint;
  Rank rank() const { return endpoint.rank(); }
  int world() const { return endpoint.world(); }

  // Pumps the channels until done() holds, sleeping whenever nothing moves. Fails after 30 s, or when another
  // rank has failed. done() may use the channels.
  void drive(std::span<Channel* const> channels, const std::function<bool()>& done);
  void drive(Channel& channel, const std::function<bool()>& done);

  // The same for what no message announces.
  void wait_until(const std::function<bool()>& done) { drive(std::span<Channel* const>{}, done); }

 private:
  void sleep();

  const std::atomic<bool>& stop_;
};

using RankFunction = std::function<void(Participant&)>;

// Runs `body` once per endpoint, each in a thread, and turns what they throw into test failures. Ranks that
// have finished keep pumping streams 0 to 3 until all have.
void run_ranks(std::span<const std::unique_ptr<Endpoint>> endpoints, const RankFunction& body);

class Conformance : public testing::TestWithParam<TransportUnderTest> {
 protected:
  void run(int world, const RankFunction& body) { run_ranks(GetParam().make_world(world), body); }
};

// Bytes that depend on everything that could be mixed up.
std::vector<std::byte> distinct_bytes(Rank from, Rank to, std::uint64_t message, std::size_t bytes);

// Fails the test when they differ, naming the first place.
void expect_same_bytes(ConstBytes got, ConstBytes expected, const std::string& what);

}  // namespace lockstep::transport
