// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

// Puts a prefix before every line of a stream that comes in pieces. Lines longer than kMaxLine are broken.
class LinePrefix {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{64} * 1024;

  explicit LinePrefix(std::string prefix) : prefix_(std::move(prefix)) {}

  // The whole lines that are complete with this piece.
  std::string feed(std::string_view piece);

  // What is left of an unfinished last line, with a newline.
  std::string finish();

 private:
  void end_line(std::string& into);

  std::string prefix_;
  std::string line_;
};

}  // namespace lockstep::rendezvous
