// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {
namespace {

using schedule::Op;

TEST(BenchStatistics, SpreadOfOddAndEvenNumbersOfSamples) {
  const std::vector<double> odd = {5, 1, 3};
  EXPECT_DOUBLE_EQ(spread_of(odd).median, 3);
  EXPECT_DOUBLE_EQ(spread_of(odd).min, 1);
  EXPECT_DOUBLE_EQ(spread_of(odd).max, 5);
  const std::vector<double> even = {4, 1, 2, 9};
  EXPECT_DOUBLE_EQ(spread_of(even).median, 3);
  const std::vector<double> one = {7};
  EXPECT_DOUBLE_EQ(spread_of(one).median, 7);
  EXPECT_THROW(spread_of({}), InternalError);
}

TEST(BenchStatistics, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_to_all, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Op::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Op::reduce, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 1), 0);
}

TEST(BenchStatistics, BandwidthIsInDecimalGigabytes) {
  EXPECT_DOUBLE_EQ(gigabytes_per_second(1'000'000, 1'000), 1);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(0, 5), 0);
}

TEST(BenchStatistics, MemoryLimitCountsWhatARankMustReadAndWrite) {
  EXPECT_EQ(memory_limit_bytes(Op::all_reduce, 4096, 2), 4096U);
  EXPECT_EQ(memory_limit_bytes(Op::all_to_all, 4096, 4), 4096U);
  EXPECT_EQ(memory_limit_bytes(Op::reduce_scatter, 4096, 4), 2560U);  // reads 4096, writes 1024
  EXPECT_EQ(memory_limit_bytes(Op::all_gather, 4096, 4), 3072U);      // three chunks of others
  EXPECT_EQ(memory_limit_bytes(Op::broadcast, 4096, 4), 4096U);
  EXPECT_EQ(memory_limit_bytes(Op::broadcast, 4096, 1), 0U);
  EXPECT_EQ(memory_limit_bytes(Op::barrier, 0, 4), 0U);
}

TEST(BenchStatistics, IterationsFillATurnWithinLimits) {
  EXPECT_EQ(iterations_for_turn(10, 75'000), 7'500U);
  EXPECT_EQ(iterations_for_turn(1e9, 75'000), 1U);
  EXPECT_EQ(iterations_for_turn(1e-9, 75'000), kMaxIterations);
  EXPECT_EQ(iterations_for_turn(0, 75'000), kMaxIterations);
}

TEST(BenchSizes, ReadsListsUnitsAndRanges) {
  EXPECT_EQ(parse_sizes("0,4096,4K,4KiB,1M,2GB"),
            (std::vector<std::size_t>{0, 4096, 4096, 4096, 1 << 20, std::size_t{2} << 30}));
  EXPECT_EQ(parse_sizes("1K:64K:4"), (std::vector<std::size_t>{1024, 4096, 16384, 65536}));
  EXPECT_EQ(parse_sizes("3:20"), (std::vector<std::size_t>{3, 6, 12}));
  EXPECT_EQ(parse_sizes("8:8:64G,1"), (std::vector<std::size_t>{8, 1}));
  EXPECT_EQ(parse_sizes("64G"), (std::vector<std::size_t>{std::size_t{1} << 36}));
}

TEST(BenchSizes, RefusesWhatIsNoSize) {
  for (const char* text : {"",
                           ",",
                           "4K,",
                           "x",
                           "-4",
                           "+4",
                           " 4",
                           "4 K",
                           "4T",
                           "4KK",
                           "1.5M",
                           "65G",
                           "99999999999999999999",
                           "18446744073709551615K",
                           "1K:",
                           ":1K",
                           "1K:64K:1",
                           "1K:64K:0",
                           "0:64K",
                           "64K:1K",
                           "1:2:3:4"}) {
    EXPECT_THROW(parse_sizes(text), UsageError) << text;
  }
  EXPECT_THROW(split_list("a,,b", "--against"), UsageError);
}

TEST(BenchSizes, ReadsCounts) {
  EXPECT_EQ(parse_counts("1,3,0", "--lanes", 0, 8), (std::vector<int>{1, 3, 0}));
  for (const char* text : {"", ",", "1,", "-1", "9", "0x1", "1.5", "two", "1,3 ", "99999999999999999999"}) {
    EXPECT_THROW(parse_counts(text, "--lanes", 0, 8), UsageError) << text;
  }
  EXPECT_THROW(parse_counts("2,0", "--ranks-per-host", 1, 8), UsageError);
}

TEST(BenchSizes, RefusesMoreSizesThanItMeasures) {
  std::string text = "1";
  for (std::size_t i = 0; i < kMaxBenchSizes; ++i) text += ",1";
  EXPECT_THROW(parse_sizes(text), UsageError);
}

TEST(BenchSizes, FormatsInTheLargestWholeUnit) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1000), "1000 B");
  EXPECT_EQ(format_size(4096), "4 KiB");
  EXPECT_EQ(format_size(std::size_t{64} << 20), "64 MiB");
  EXPECT_EQ(format_size(std::size_t{3} << 40), "3072 GiB");
}

}  // namespace
}  // namespace lockstep::cli
