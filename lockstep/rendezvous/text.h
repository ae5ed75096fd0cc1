// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

// A value from outside as it may appear in a message: in single quotes, unprintable bytes as \xNN, and cut
// after 64 characters.
std::string quote(std::string_view value);

// A setting and the name under which the user knows it ("--rank", "SLURM_PROCID"), for error messages.
struct NamedText {
  std::string name;
  std::string text;
};

// The whole text as a decimal number from `least` to `most`; no sign, no spaces. UsageError otherwise, as
// "RANK is 'x': expected a whole number from 0 to 4095".
std::uint64_t parse_number(const NamedText& setting, std::uint64_t least, std::uint64_t most);

// True for letters, digits and the characters of `others`.
bool is_plain(std::string_view text, std::string_view others);

// "1, 2, 5-9", cut after 16 entries with "and 12 more". `numbers` must ascend.
std::string list_of(std::span<const int> numbers);

}  // namespace lockstep::rendezvous
