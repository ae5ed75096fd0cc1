// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/protocol.h"

#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"

namespace lockstep::cli {
namespace {

using Verb = Command::Verb;

constexpr std::array<std::string_view, 5> kVerbs = {"prepare", "check", "run", "release", "quit"};
constexpr std::array<std::string_view, 3> kExactness = {"auto", "true", "false"};
constexpr std::array<std::string_view, 3> kFailures = {"usage", "comm", "internal"};

[[noreturn]] void refuse(std::string_view line, std::string_view why) {
  throw DataError(fmt::format("benchmark message '{}': {}", line.substr(0, 80), why));
}

template <typename Enum, std::size_t N>
Enum enum_of(const std::array<std::string_view, N>& names, std::string_view text, std::string_view line) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  refuse(line, fmt::format("'{}' is not known here", text));
}

template <typename Enum, std::size_t N>
std::string_view text_of(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

std::string_view take_word(std::string_view& rest) {
  const std::size_t at = rest.find(' ');
  const std::string_view word = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return word;
}

// The key=value words after the first one. Every key must be asked for, and asked for only once.
class Fields {
 public:
  Fields(std::string_view line, std::string_view rest) : line_(line) {
    while (!rest.empty()) {
      const std::string_view word = take_word(rest);
      const std::size_t at = word.find('=');
      if (at == std::string_view::npos) refuse(line_, fmt::format("'{}' is not key=value", word));
      if (!values_.emplace(word.substr(0, at), word.substr(at + 1)).second) {
        refuse(line_, fmt::format("'{}' is given twice", word.substr(0, at)));
      }
    }
  }

  std::string_view text(std::string_view key) {
    const auto found = values_.find(key);
    if (found == values_.end()) refuse(line_, fmt::format("'{}' is missing", key));
    const std::string_view value = found->second;
    values_.erase(found);
    return value;
  }

  std::uint64_t number(std::string_view key, std::uint64_t most) { return number_of(key, text(key), most); }

  // None, or numbers with commas between them.
  std::vector<int> numbers(std::string_view key, int most) {
    std::string_view rest = text(key);
    std::vector<int> numbers;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      numbers.push_back(
          static_cast<int>(number_of(key, rest.substr(0, comma), static_cast<std::uint64_t>(most))));
      if (comma + 1 == rest.size()) refuse(line_, fmt::format("'{}' ends with a comma", key));
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return numbers;
  }

  void expect_end() const {
    if (!values_.empty()) refuse(line_, fmt::format("'{}' is not known here", values_.begin()->first));
  }

 private:
  std::uint64_t number_of(std::string_view key, std::string_view value, std::uint64_t most) const {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number > most) {
      refuse(line_, fmt::format("'{}' is not a number from 0 to {}", key, most));
    }
    return number;
  }

  std::string_view line_;
  std::map<std::string_view, std::string_view> values_;
};

constexpr std::uint64_t kMaxTime = std::numeric_limits<std::int64_t>::max();

void check_length(std::string_view line) {
  if (line.size() > kMaxBenchLine) refuse(line, fmt::format("longer than {} bytes", kMaxBenchLine));
}

std::string format_case(const Case& what) {
  return fmt::format("system={} op={} algorithm={} dtype={} bytes={} exact={} registered={} lanes={}",
                     what.system, name_of(what.op), what.algorithm, name_of(what.dtype), what.bytes,
                     text_of(kExactness, what.exactness), what.registered ? 1 : 0,
                     fmt::join(what.lanes, ","));
}

Case parse_case(Fields& fields, std::string_view line) {
  Case what;
  try {
    what.op = schedule::parse_op(fields.text("op"));
    what.dtype = parse_dtype(fields.text("dtype"));
  } catch (const UsageError& error) {
    refuse(line, error.what());
  }
  what.system = fields.text("system");
  what.algorithm = fields.text("algorithm");
  what.bytes = fields.number("bytes", kMaxBenchBytes);
  what.exactness = enum_of<Exactness>(kExactness, fields.text("exact"), line);
  what.registered = fields.number("registered", 1) == 1;
  what.lanes = fields.numbers("lanes", kMaxBenchLanes);
  return what;
}

}  // namespace

std::string format_hello(Rank rank) {
  return fmt::format("hello rank={}", rank);
}

std::string format_command(const Command& command) {
  std::string line(text_of(kVerbs, command.verb));
  if (command.verb == Verb::release || command.verb == Verb::quit) return line;
  line += fmt::format(" slot={}", command.slot);
  if (command.verb == Verb::prepare) line += " " + format_case(command.what);
  if (command.verb == Verb::run) line += fmt::format(" iterations={}", command.iterations);
  return line;
}

std::string format_reply(const Reply& reply) {
  return fmt::format("ok correct={} entered_ns={} left_ns={} elapsed_ns={}", reply.correct ? 1 : 0,
                     reply.entered_ns, reply.left_ns, reply.elapsed_ns);
}

std::string format_failure(const Failure& failure) {
  std::string line = fmt::format("error {} {}", text_of(kFailures, failure.kind), failure.text);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  line.resize(std::min(line.size(), kMaxBenchLine));
  return line;
}

std::optional<Failure> parse_failure(std::string_view line) {
  check_length(line);
  std::string_view rest = line;
  if (take_word(rest) != "error") return std::nullopt;
  const auto kind = enum_of<Failure::Kind>(kFailures, take_word(rest), line);
  return Failure{.kind = kind, .text = std::string(rest)};
}

Rank parse_hello(std::string_view line) {
  check_length(line);
  std::string_view rest = line;
  if (take_word(rest) != "hello") refuse(line, "expected hello");
  Fields fields(line, rest);
  const auto rank = static_cast<Rank>(fields.number("rank", kMaxBenchRanks - 1));
  fields.expect_end();
  return rank;
}

Command parse_command(std::string_view line) {
  check_length(line);
  std::string_view rest = line;
  Command command;
  command.verb = enum_of<Verb>(kVerbs, take_word(rest), line);
  Fields fields(line, rest);
  const bool names_slot = command.verb != Verb::release && command.verb != Verb::quit;
  if (names_slot) command.slot = static_cast<std::uint32_t>(fields.number("slot", kMaxBenchSlots - 1));
  if (command.verb == Verb::prepare) command.what = parse_case(fields, line);
  if (command.verb == Verb::run) command.iterations = fields.number("iterations", kMaxIterations);
  fields.expect_end();
  return command;
}

Reply parse_reply(std::string_view line, std::optional<Failure>& failure) {
  failure = parse_failure(line);
  if (failure) return {};
  std::string_view rest = line;
  if (take_word(rest) != "ok") refuse(line, "expected ok or error");
  Fields fields(line, rest);
  Reply reply;
  reply.correct = fields.number("correct", 1) == 1;
  reply.entered_ns = static_cast<std::int64_t>(fields.number("entered_ns", kMaxTime));
  reply.left_ns = static_cast<std::int64_t>(fields.number("left_ns", kMaxTime));
  reply.elapsed_ns = static_cast<std::int64_t>(fields.number("elapsed_ns", kMaxTime));
  fields.expect_end();
  return reply;
}

}  // namespace lockstep::cli
