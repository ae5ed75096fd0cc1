// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::test {

// An endpoint whose peers say what a test wants them to say; all else is left to a real one.
class ScriptedEndpoint final : public transport::Endpoint {
 public:
  using StreamId = transport::StreamId;
  using NoticeHead = transport::NoticeHead;

  explicit ScriptedEndpoint(std::unique_ptr<Endpoint> real) : real_(std::move(real)) {}

  // --- The script.
  std::map<std::pair<Rank, StreamId>, std::map<std::uint64_t, NoticeHead>> notices;
  std::map<std::pair<Rank, StreamId>, std::string> failures;
  std::set<Rank> dead;
  std::atomic<bool> has_memory = true;        // for what a caller asks for
  std::atomic<bool> can_tell_failure = true;  // there is memory for what peers are told
  std::function<void()> while_failures_wait;  // for peers to make room

  std::uint64_t notices_of(Rank peer, StreamId stream) override {
    const auto& said = notices[{peer, stream}];
    return said.empty() ? real_->notices_of(peer, stream) : said.rbegin()->first + 1;
  }
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override {
    const auto& said = notices[{peer, stream}];
    if (said.empty()) return real_->notice_of(peer, stream, index);
    const auto found = said.find(index);
    return found == said.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override {
    const auto found = failures.find({peer, stream});
    return found == failures.end() ? real_->failure_of(peer, stream) : std::optional(found->second);
  }
  bool alive(Rank peer) override { return !dead.contains(peer) && real_->alive(peer); }
  Bytes allocate(std::size_t bytes) override {
    if (!has_memory) throw UsageError("no room for a buffer");
    return real_->allocate(bytes);
  }

  void fail(StreamId stream, std::string_view why) override {
    if (!can_tell_failure) throw std::bad_alloc();
    real_->fail(stream, why);
  }
  void pass_on_failures(Deadline deadline) override {
    if (while_failures_wait) while_failures_wait();
    real_->pass_on_failures(deadline);
  }

  // --- As the real one.
  Rank rank() const override { return real_->rank(); }
  int world() const override { return real_->world(); }
  std::string_view kind(Rank peer) const override { return real_->kind(peer); }
  transport::Channel& channel(Rank peer, StreamId stream) override { return real_->channel(peer, stream); }
  void release(Bytes memory) override { real_->release(memory); }
  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override {
    real_->publish(stream, index, head);
  }
  void push_notice(Rank peer, StreamId stream) override { real_->push_notice(peer, stream); }
  bool prepare_wait() override { return real_->prepare_wait(); }
  int wait_fd() const override { return real_->wait_fd(); }
  void finish_wait() override { real_->finish_wait(); }
  void wake() override { real_->wake(); }

 private:
  std::unique_ptr<Endpoint> real_;
};

}  // namespace lockstep::test
