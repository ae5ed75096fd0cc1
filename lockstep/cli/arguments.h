// SPDX-License-Identifier: Apache-2.0
//
// What users type, checked before the parser sees it: every mistake gets one sentence in one style, with the
// flag as it was typed and a suggestion where one is close. The parser's own messages are for programmers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace lockstep::cli {

using Arguments = std::span<const std::string>;

// "unknown command 'lauch': did you mean 'launch'?"; `help` is the command that lists the known ones.
[[noreturn]] void refuse_unknown(std::string_view what, std::string_view typed, Arguments known,
                                 std::string_view help);

// "--op is 'fly': expected all_reduce, ... or barrier", or what was probably meant. Returns when `typed` is
// known.
void expect_one_of(std::string_view flag, std::string_view typed, Arguments known);

// For CLI::Option::check(), at most one for an option. They return what was expected, and check_arguments()
// says the rest.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
CLI::Validator number(double least, double most);

bool is_flag(std::string_view argument);

// The option that an argument names; null when there is none. "--name=value" and "-nvalue" name one too.
CLI::Option* option_of(CLI::App& command, std::string_view argument);

// Does the option that this argument names take the argument after it as its value?
bool takes_next(const CLI::Option& option, std::string_view argument);

// UsageError for a flag or argument that `command` (`name` for users) does not have, a flag that is given
// twice or without its value, a value that its option does not accept, and an argument that is missing.
void check_arguments(CLI::App& command, std::string_view name, Arguments arguments);

// Parses checked arguments. True when the parser has answered by itself: `answer` is help or version then.
bool parse(CLI::App& app, Arguments arguments, std::string& answer);

}  // namespace lockstep::cli
