// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/nodelist.h"

#include <charconv>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::size_t kMaxDigits = 18;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Expands names by extending a list of prefixes: a literal is appended to every prefix, a bracket multiplies
// the list.
class Expander {
 public:
  Expander(std::string_view text, const NodelistLimits& limits) : text_(text), limits_(limits) {}

  std::vector<std::string> run() {
    name();
    while (at_ < text_.size()) {
      expect(',', "',' or the end of the list");
      name();
    }
    return std::move(hosts_);
  }

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::size_t width = 0;
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError(fmt::format("node list {} at character {}: {}", quote(text_), at_ + 1, why));
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void expect(char c, std::string_view what) {
    if (!next_is(c)) fail(fmt::format("expected {}", what));
    ++at_;
  }

  void name() {
    std::vector<std::string> names = {""};
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      names = text_[at_] == '[' ? multiplied(names) : extended(std::move(names));
    }
    if (at_ == start) fail("expected a host name");
    if (hosts_.size() + names.size() > limits_.max_hosts) too_many_hosts();
    hosts_.insert(hosts_.end(), names.begin(), names.end());
  }

  std::vector<std::string> extended(std::vector<std::string> names) {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_plain(text_.substr(at_, 1), "._-")) ++at_;
    if (at_ == start) {
      fail(fmt::format("{} cannot be part of a host name", quote(text_.substr(at_, 1))));
    }
    for (std::string& prefix : names) append(prefix, text_.substr(start, at_ - start));
    return names;
  }

  std::vector<std::string> multiplied(const std::vector<std::string>& prefixes) {
    const std::vector<Range> ranges = bracket();
    std::vector<std::string> names;
    for (const std::string& prefix : prefixes) {
      for (const Range& range : ranges) extend_by(range, prefix, names);
    }
    return names;
  }

  void extend_by(const Range& range, const std::string& prefix, std::vector<std::string>& names) const {
    const std::uint64_t room = limits_.max_hosts - hosts_.size() - names.size();
    if (range.last - range.first >= room) too_many_hosts();
    for (std::uint64_t number = range.first; number <= range.last; ++number) {
      append(names.emplace_back(prefix), fmt::format("{:0{}}", number, range.width));
    }
  }

  std::vector<Range> bracket() {
    expect('[', "'['");
    std::vector<Range> ranges = {range()};
    while (next_is(',')) {
      ++at_;
      ranges.push_back(range());
    }
    expect(']', "',', '-' or ']'");
    return ranges;
  }

  Range range() {
    Range result;
    result.first = number(&result.width);
    result.last = result.first;
    if (next_is('-')) {
      ++at_;
      const std::size_t start = at_;
      std::size_t ignored = 0;
      result.last = number(&ignored);
      if (result.last < result.first) {
        at_ = start;
        fail(fmt::format("the range ends at {} but begins at {}", result.last, result.first));
      }
    }
    return result;
  }

  std::uint64_t number(std::size_t* width) {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    *width = at_ - start;
    if (*width == 0) fail("expected a number");
    if (*width > kMaxDigits) {
      at_ = start;
      fail(fmt::format("a number has more than {} digits", kMaxDigits));
    }
    std::uint64_t value = 0;
    std::from_chars(text_.data() + start, text_.data() + at_, value);
    return value;
  }

  void append(std::string& name, std::string_view piece) const {
    if (name.size() + piece.size() > limits_.max_name) {
      fail(fmt::format("a host name is longer than {} characters", limits_.max_name));
    }
    name += piece;
  }

  [[noreturn]] void too_many_hosts() const {
    fail(fmt::format("the list names more than {} hosts", limits_.max_hosts));
  }

  std::string_view text_;
  NodelistLimits limits_;
  std::size_t at_ = 0;
  std::vector<std::string> hosts_;
};

}  // namespace

std::vector<std::string> expand_nodelist(std::string_view text, const NodelistLimits& limits) {
  return Expander(text, limits).run();
}

}  // namespace lockstep::rendezvous
