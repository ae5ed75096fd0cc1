// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/socket.h"
#include "lockstep/transport/shm/endpoint.h"
#include "lockstep/transport/shm/passing.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/refusals.h"
#include "tests/transport/conformance.h"
#include "tests/transport/open_files.h"
#include "tests/transport/shm_world.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Shm, Conformance,
                         testing::Values(TransportUnderTest{
                             .name = "threads", .make_world = make_shm_world, .lands = true}),
                         transport_name);

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Shm, NamesItsKind) {
  const auto world = make_shm_world(2);
  EXPECT_EQ(world[0]->kind(1), "shm");
  EXPECT_TRUE(world[0]->alive(0));
  EXPECT_TRUE(world[0]->alive(1));
}

TEST(Shm, AWorldOfOneNeedsNobody) {
  const auto world = make_shm_world(1);
  EXPECT_EQ(world[0]->world(), 1);
  EXPECT_EQ(world[0]->allocate(100).size(), 100u);
}

TEST(Shm, LeavesNoDescriptorAndNoName) {
  const std::vector<std::string> names = test::shared_memory_names();
  const std::size_t before = open_descriptors();
  {
    const auto world = make_shm_world(4);
    for (const auto& endpoint : world) endpoint->allocate(10'000'000);
    EXPECT_EQ(test::shared_memory_names(), names);
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(test::shared_memory_names(), names);
}

TEST(Shm, UntouchedStreamsTakeNoMemory) {
  const auto world = make_shm_world(2);
  const auto resident_pages = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t size = 0;
    std::size_t resident = 0;
    std::size_t shared = 0;
    file >> size >> resident >> shared;
    return static_cast<std::ptrdiff_t>(shared);
  };
  const std::ptrdiff_t before = resident_pages();
  world[0]->channel(1, 200).pump();
  EXPECT_LT(resident_pages() - before, 16);
}

// Then the kernel delivers the message and leaves out what was passed with it.
TEST(Shm, SaysThatNoDescriptorIsFree) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor here(ends[0]);
  const Descriptor there(ends[1]);
  std::array<std::byte, 4> message{};
  const std::array<int, 1> passed = {STDERR_FILENO};
  ASSERT_EQ(pass(there.get(), message, passed), Passing::done);
  std::vector<Descriptor> received;
  const test::OpenFilesLimit limit(0);
  EXPECT_THAT(error_of([&] { receive_passed(here.get(), message, 1, received); }), HasSubstr("ulimit -n"));
}

TEST(Shm, SaysHowMuchMemoryIsMissing) {
  const auto world = make_shm_world(1);
  constexpr std::size_t kTooMuch = std::size_t{1} << 46;
  const std::string error = error_of([&] { world[0]->allocate(kTooMuch); });
  EXPECT_THAT(error, HasSubstr(std::to_string(kTooMuch)));
  EXPECT_THAT(error, HasSubstr("bytes of memory available"));
  EXPECT_THROW(world[0]->allocate(~std::size_t{0}), UsageError);
  EXPECT_EQ(world[0]->allocate(1000).size(), 1000u) << "the endpoint stays usable";
}

TEST(Shm, NamesTheRankThatDoesNotCome) {
  const std::string error = error_of(
      [] { connect_shm({.rank = 0, .world = 2, .run = unique_run(), .deadline = Deadline::after(50ms)}); });
  EXPECT_THAT(error, HasSubstr("rank 1 did not come"));
}

// Rank 1 proves itself and then says nothing more.
TEST(Shm, AStopEndsTheWaitForAGreeting) {
  const std::string run = unique_run();
  std::stop_source stop;
  auto joined = std::async(std::launch::async, [&] {
    return test::error_of<Aborted>([&] {
      connect_shm(
          {.rank = 0, .world = 2, .run = run, .deadline = Deadline::after(60s), .stop = stop.get_token()});
    });
  });
  Address rank_zero;
  rank_zero.unix_name = "lockstep/" + run + "/0/0";
  const AuthenticatedConnection silent =
      dial(rank_zero, {.me = {.role = "shm", .rank = 1, .run = run}, .secret = {}, .tls = nullptr},
           Deadline::after(20s));
  ASSERT_TRUE(wait_ready(silent.connection->fd(), Readiness::read, Deadline::after(20s))) << "it greets";
  stop.request_stop();
  ASSERT_EQ(joined.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(joined.get(), "joining over shm: waiting for the greeting of rank 1 was given up");
}

// Rank 0 has more memory than it had when they met, and sends from there.
TEST(Shm, MemoryOfAPeerThatNoDescriptorIsFreeForIsOutOfReach) {
  const auto world = make_shm_world(2);
  const Bytes lent = world[0]->allocate(1'000'000);
  std::vector<std::byte> into(lent.size());
  Channel& receiver = world[1]->channel(0, 0);
  receiver.receive({}, into);
  world[0]->channel(1, 0).send({}, lent);
  const test::OpenFilesLimit limit(0);
  EXPECT_THAT(test::error_of<DataError>([&] { receiver.pump(); }),
              AllOf(HasSubstr("memory that rank 0 announced is out of reach"), HasSubstr("ulimit -n")));
}

TEST(Shm, RefusesTheSameRankTwice) {
  const std::string run = unique_run();
  std::vector<std::string> errors(2);
  {
    std::vector<std::jthread> twins;
    for (std::string& error : errors) {
      twins.emplace_back([&] {
        error = error_of(
            [&] { connect_shm({.rank = 1, .world = 2, .run = run, .deadline = Deadline::after(2s)}); });
      });
    }
  }
  EXPECT_THAT(errors, testing::UnorderedElementsAre(HasSubstr("in use"), HasSubstr("could not connect")));
}

TEST(Shm, RefusesARankWithAnotherSecret) {
  const std::string run = unique_run();
  const std::jthread other([&] {
    EXPECT_THROW(connect_shm({.rank = 0,
                              .world = 2,
                              .run = run,
                              .secret = Secret::from_value("one secret of sixteen bytes"),
                              .deadline = Deadline::after(500ms)}),
                 Timeout);
  });
  EXPECT_THROW(connect_shm({.rank = 1,
                            .world = 2,
                            .run = run,
                            .secret = Secret::from_value("another secret of the same kind"),
                            .deadline = Deadline::after(500ms)}),
               CommError);
}

TEST(Shm, RefusesARankOfAnotherWorldSize) {
  const std::string run = unique_run();
  const std::jthread other([&] {
    EXPECT_THROW(connect_shm({.rank = 0, .world = 2, .run = run, .deadline = Deadline::after(5s)}), Error);
  });
  EXPECT_THAT(
      error_of([&] { connect_shm({.rank = 1, .world = 3, .run = run, .deadline = Deadline::after(1s)}); }),
      HasSubstr("rank 2 did not come"));
}

TEST(Shm, ManyRefusalsAreFewLines) {
  const std::string run = unique_run();
  test::expect_few_refusals_logged("turned away a process", [&run] {
    std::stop_source stop;
    const std::jthread host([&] {
      EXPECT_THROW(connect_shm({.rank = 0,
                                .world = 2,
                                .run = run,
                                .deadline = Deadline::after(60s),
                                .stop = stop.get_token()}),
                   Aborted);
    });
    const Address meeting_place{.host = {}, .port = 0, .unix_name = fmt::format("lockstep/{}/0/0", run)};
    const Credentials out_of_range = {
        .me = {.role = "shm", .rank = 7, .run = run, .generation = 0}, .secret = {}, .tls = nullptr};
    for (int i = 0; i < 100; ++i) dial(meeting_place, out_of_range, Deadline::after(60s));
    stop.request_stop();
  });
}

TEST(Shm, RefusesARankThatDoesNotExist) {
  EXPECT_THROW(connect_shm({.rank = 2, .world = 2, .run = unique_run()}), UsageError);
  EXPECT_THROW(connect_shm({.rank = -1, .world = 2, .run = unique_run()}), UsageError);
}

}  // namespace
}  // namespace lockstep::transport
