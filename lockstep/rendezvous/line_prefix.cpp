// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/line_prefix.h"

namespace lockstep::rendezvous {

std::string LinePrefix::feed(std::string_view piece) {
  std::string result;
  for (char c : piece) {
    if (c == '\n') {
      end_line(result);
    } else {
      line_ += c;
      if (line_.size() == kMaxLine) end_line(result);
    }
  }
  return result;
}

std::string LinePrefix::finish() {
  std::string result;
  if (!line_.empty()) end_line(result);
  return result;
}

void LinePrefix::end_line(std::string& into) {
  into += prefix_;
  into += line_;
  into += '\n';
  line_.clear();
}

}  // namespace lockstep::rendezvous
