// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/hostfile.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxHostName = 255;
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kSlots = "slots=";
constexpr std::string_view kExample = "`node1 slots=4`";

struct Place {
  std::string_view file;
  int line = 0;

  std::string to_string() const { return fmt::format("{}:{}", file, line); }
};

[[noreturn]] void fail(const Place& place, const std::string& why) {
  throw UsageError(fmt::format("{}: {}", place.to_string(), why));
}

// Cuts the first word off `line`; empty when there is none.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

HostSlots parse_line(std::string_view host, std::string_view rest, const Place& place) {
  if (host.size() > kMaxHostName || !is_plain(host, "._-:")) {
    fail(place,
         fmt::format(
             "{} is not a host name or address: expected at most {} letters, digits, '.', '_', '-' or ':'",
             quote(host), kMaxHostName));
  }
  HostSlots result{std::string(host), 1};
  bool seen = false;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (!word.starts_with(kSlots) || seen) {
      fail(place, fmt::format("{} is not understood after the host: expected 'slots=N' once", quote(word)));
    }
    seen = true;
    result.slots = static_cast<int>(
        parse_number({place.to_string() + ": slots", std::string(word.substr(kSlots.size()))}, 1, kMaxWorld));
  }
  return result;
}

}  // namespace

std::vector<HostSlots> parse_hostfile(std::string_view text, std::string_view file) {
  std::vector<HostSlots> hosts;
  std::map<std::string, int, std::less<>> line_of;
  Place place{file, 0};
  std::uint64_t slots = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++place.line;
    line = line.substr(0, line.find('#'));
    const std::string_view host = take_word(line);
    if (host.empty()) continue;
    hosts.push_back(parse_line(host, line, place));
    const auto [earlier, is_new] = line_of.emplace(host, place.line);
    if (!is_new) {
      fail(place,
           fmt::format("host {} is already on line {}: keep one of the two lines, with all of its slots",
                       host, earlier->second));
    }
    slots += hosts.back().slots;
    if (slots > kMaxWorld) {
      fail(place, fmt::format("the hosts up to here have {} slots, but a world has at most {}: lower their "
                              "slots or leave out hosts",
                              slots, kMaxWorld));
    }
  }
  if (hosts.empty()) {
    throw UsageError(
        fmt::format("{}: no host in the file: write a line such as {} for each one", file, kExample));
  }
  return hosts;
}

std::vector<HostSlots> load_hostfile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) {
    throw UsageError(fmt::format("cannot read the host file {}: {}; it has a line such as {} for each host",
                                 path.string(), std::strerror(errno), kExample));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxFileBytes) {
    throw UsageError(
        fmt::format("host file {} is longer than {} bytes: name one with a line such as {} for each host",
                    path.string(), kMaxFileBytes, kExample));
  }
  return parse_hostfile(text, path.string());
}

int total_slots(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const HostSlots& host) { return sum + host.slots; });
}

}  // namespace lockstep::rendezvous
