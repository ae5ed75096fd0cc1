// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

inline constexpr std::size_t kMaxBenchBytes = std::size_t{1} << 36;  // 64 GiB
inline constexpr std::size_t kMaxBenchSizes = 256;

// A list of sizes: "4K,1M,64M". K, M and G count in powers of 1024, with or without "iB"; "first:last:factor"
// stands for first, first * factor, ... up to last ("1K:64M:4"; the factor is 2 when it is left out).
// UsageError naming the part that is wrong, also when a limit above is exceeded.
std::vector<std::size_t> parse_sizes(std::string_view text);

// "64 MiB", "4 KiB", "100 B": the largest unit that gives a whole number.
std::string format_size(std::size_t bytes);

// "64M", "4K", "100": the same as --bytes takes it.
std::string short_size(std::size_t bytes);

// The parts of a list with commas, of which those in parentheses belong to a part: "a,b(c,d)" has two.
// UsageError naming `option` when one is empty.
std::vector<std::string> split_list(std::string_view text, std::string_view option);

// A list of whole numbers from `least` to `most`: "1,3". UsageError naming `option` and what is expected.
std::vector<int> parse_counts(std::string_view text, std::string_view option, int least, int most);

}  // namespace lockstep::cli
