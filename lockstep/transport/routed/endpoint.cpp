// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/routed/endpoint.h"

#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/poll_set.h"

namespace lockstep::transport {
namespace {

class RoutedEndpoint final : public Endpoint {
 public:
  explicit RoutedEndpoint(RoutedParts whole) : whole_(std::move(whole)) {
    for (const auto& part : whole_.parts) watch_.add(part->wait_fd());
  }

  Rank rank() const override { return whole_.rank; }
  int world() const override { return static_cast<int>(whole_.routes.size()); }
  std::string_view kind(Rank peer) const override { return part_of(peer).kind(rank_in_part(peer)); }
  bool shares_host(Rank peer) const override { return part_of(peer).shares_host(rank_in_part(peer)); }
  Channel& channel(Rank peer, StreamId stream) override {
    LOCKSTEP_CHECK(peer != rank());
    return part_of(peer).channel(rank_in_part(peer), stream);
  }

  void forget_peer_memory() override {
    for (const auto& part : whole_.parts) part->forget_peer_memory();
  }
  Bytes allocate(std::size_t bytes) override { return whole_.parts[whole_.memory_part]->allocate(bytes); }
  void release(Bytes memory) override { whole_.parts[whole_.memory_part]->release(memory); }

  AddressSpace* lasting_space(Rank peer) override { return part_of(peer).lasting_space(rank_in_part(peer)); }

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override {
    for (const auto& part : whole_.parts) part->publish(stream, index, head);
  }
  void fail(StreamId stream, std::string_view why) override {
    for (const auto& part : whole_.parts) part->fail(stream, why);
  }
  void pass_on_failures(Deadline deadline) override {
    for (const auto& part : whole_.parts) part->pass_on_failures(deadline);
  }
  void push_notice(Rank peer, StreamId stream) override {
    part_of(peer).push_notice(rank_in_part(peer), stream);
  }
  std::uint64_t notices_of(Rank peer, StreamId stream) override {
    return part_of(peer).notices_of(rank_in_part(peer), stream);
  }
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override {
    return part_of(peer).notice_of(rank_in_part(peer), stream, index);
  }
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override {
    return part_of(peer).failure_of(rank_in_part(peer), stream);
  }
  bool alive(Rank peer) override { return peer == rank() || part_of(peer).alive(rank_in_part(peer)); }

  bool prepare_wait() override {
    bool quiet = true;
    // All of them, even after one has news: finish_wait() then undoes the same for all.
    for (const auto& part : whole_.parts) quiet &= part->prepare_wait();
    return quiet;
  }
  int wait_fd() const override { return watch_.fd(); }
  void finish_wait() override {
    for (const auto& part : whole_.parts) part->finish_wait();
  }
  void wake() override { whole_.parts.front()->wake(); }

 private:
  const Route& route_to(Rank peer) const {
    LOCKSTEP_CHECK(peer >= 0 && peer < world());
    return whole_.routes[peer];
  }
  Endpoint& part_of(Rank peer) const { return *whole_.parts[route_to(peer).part]; }
  Rank rank_in_part(Rank peer) const { return route_to(peer).rank; }

  RoutedParts whole_;
  PollSet watch_;  // all parts
};

void check_routes(const RoutedParts& whole) {
  if (whole.parts.empty() || whole.memory_part >= whole.parts.size()) {
    throw UsageError(fmt::format("part {} of {} endpoints cannot give registered memory", whole.memory_part,
                                 whole.parts.size()));
  }
  for (std::size_t rank = 0; rank < whole.routes.size(); ++rank) {
    const Route& route = whole.routes[rank];
    if (route.part < whole.parts.size() && route.rank >= 0 && route.rank < whole.parts[route.part]->world()) {
      const bool leads_to_us = route.rank == whole.parts[route.part]->rank();
      if (leads_to_us == (static_cast<Rank>(rank) == whole.rank)) continue;
    }
    throw UsageError(fmt::format("the route to rank {} leads to rank {} of endpoint {}, which is not it",
                                 rank, route.rank, route.part));
  }
  if (whole.rank < 0 || whole.rank >= static_cast<Rank>(whole.routes.size())) {
    throw UsageError(fmt::format("rank {} does not exist in a world of {}", whole.rank, whole.routes.size()));
  }
}

}  // namespace

std::unique_ptr<Endpoint> make_routed(RoutedParts parts) {
  check_routes(parts);
  return std::make_unique<RoutedEndpoint>(std::move(parts));
}

}  // namespace lockstep::transport
