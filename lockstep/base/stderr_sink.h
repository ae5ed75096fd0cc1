// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include <spdlog/sinks/base_sink.h>

namespace lockstep::log {

// Writes each line to standard error, or loses it: a closed stream, a reader that is gone (no SIGPIPE), a
// reader that does not read (at most 100 ms), a full disk. The part of a line beyond 4096 bytes is cut.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
};

}  // namespace lockstep::log
