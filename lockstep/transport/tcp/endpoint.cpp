// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/endpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/socket.h"
#include "lockstep/transport/tcp/buffers.h"
#include "lockstep/transport/tcp/limits.h"
#include "lockstep/transport/tcp/mesh.h"
#include "lockstep/transport/tcp/peer.h"

namespace lockstep::transport::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kSmallBlocksKept = 256;
constexpr std::size_t kSegmentBlocksKept = 2 * kViewWindow / kSegmentBytes;
constexpr auto kFarewell = 5s;
constexpr auto kFarewellPause = 200us;
constexpr std::uint64_t kBellTag = ~std::uint64_t{0};

Descriptor check_opened(int fd, std::string_view what) {
  if (fd < 0) throw CommError(fmt::format("cannot open an {}: {}", what, std::strerror(errno)));
  return Descriptor(fd);
}

// Whether the system still holds bytes that the other side has not acknowledged.
bool has_unacknowledged(Link& link) {
  int bytes = 0;
  return link.is_open() && ::ioctl(link.fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

// The endpoint of a world whose connections stand.
class TcpEndpoint final : public Endpoint {
 public:
  // links[r]: the connections to rank r in the order of their numbers; none for ourselves.
  TcpEndpoint(Rank rank, std::uint64_t generation,
              std::vector<std::vector<std::unique_ptr<Connection>>> links);
  ~TcpEndpoint() override;

  Rank rank() const override { return rank_; }
  int world() const override { return static_cast<int>(peers_.size()); }
  std::string_view kind(Rank) const override { return "tcp"; }
  bool shares_host(Rank peer) const override { return shares_host_[peer]; }
  Channel& channel(Rank peer, StreamId stream) override { return peer_at(peer).channel(stream); }

  Bytes allocate(std::size_t bytes) override;
  void release(Bytes memory) override;

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override;
  void fail(StreamId stream, std::string_view why) override;
  void pass_on_failures(Deadline deadline) override;
  void push_notice(Rank peer, StreamId stream) override;
  std::uint64_t notices_of(Rank peer, StreamId stream) override;
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override;
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override;
  bool alive(Rank peer) override;

  bool prepare_wait() override;
  int wait_fd() const override { return poller_.get(); }
  void finish_wait() override;
  void wake() override;

 private:
  struct OwnNotice {
    std::uint64_t index = 0;
    NoticeHead head;
  };

  Peer& peer_at(Rank rank);
  void watch(Link& link, Rank rank, bool for_writing, int operation);
  void update_watches(Rank rank);
  void pass_on_what_was_sent();

  Rank rank_;
  Descriptor poller_;  // epoll: all links and the bell
  Descriptor bell_;    // eventfd
  BlockPools pools_;
  Progress progress_;
  std::map<StreamId, OwnNotice> own_notices_;
  std::set<StreamId> failed_;
  std::map<const std::byte*, std::size_t> allocated_;
  std::vector<std::unique_ptr<Peer>> peers_;        // by rank; null for ourselves
  std::vector<std::vector<bool>> watched_writing_;  // by rank and link
  std::vector<bool> shares_host_;                   // by rank
};

TcpEndpoint::TcpEndpoint(Rank rank, std::uint64_t generation,
                         std::vector<std::vector<std::unique_ptr<Connection>>> links)
    : rank_(rank),
      poller_(check_opened(::epoll_create1(EPOLL_CLOEXEC), "epoll")),
      bell_(check_opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      pools_{.small{kEagerBytes, kSmallBlocksKept}, .segments{kSegmentBytes, kSegmentBlocksKept}},
      peers_(links.size()),
      watched_writing_(links.size()),
      shares_host_(links.size(), true) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kBellTag}};
  LOCKSTEP_CHECK(::epoll_ctl(poller_.get(), EPOLL_CTL_ADD, bell_.get(), &event) == 0);
  for (Rank peer = 0; peer < world(); ++peer) {
    if (peer == rank_) continue;
    peers_[peer] = std::make_unique<Peer>(peer, generation, pools_, progress_);
    for (auto& connection : links[peer]) {
      shares_host_[peer] = peer_shares_host(connection->fd());
      widen_loopback_buffers(connection->fd());
      peers_[peer]->add_link(std::move(connection));
    }
    watched_writing_[peer].resize(links[peer].size());
    for (Link& link : peers_[peer]->links()) watch(link, peer, false, EPOLL_CTL_ADD);
  }
}

TcpEndpoint::~TcpEndpoint() {
  pass_on_what_was_sent();
  peers_.clear();
  for (const auto& [memory, bytes] : allocated_) {
    ::operator delete(const_cast<std::byte*>(memory), kAlignment);
  }
}

// A system that still gets bytes for a closed connection resets it, and what the other side has not
// acknowledged by then would be lost.
void TcpEndpoint::pass_on_what_was_sent() {
  const Deadline deadline = Deadline::after(kFarewell);
  const auto finished = [](Peer& peer) {
    return !peer.is_connected() ||
           (!peer.has_output() && std::none_of(peer.links().begin(), peer.links().end(), has_unacknowledged));
  };
  for (const auto& peer : peers_) {
    if (peer != nullptr) peer->abandon_all();
  }
  // In turns: one that cannot be reached must not take the time of the others.
  for (bool some_wait = true; some_wait && !deadline.passed();) {
    some_wait = false;
    bool moved = false;
    for (const auto& peer : peers_) {
      if (peer == nullptr || finished(*peer)) continue;
      some_wait = true;
      moved = peer->pump() || moved;
    }
    if (some_wait && !moved) std::this_thread::sleep_for(kFarewellPause);
  }
}

Peer& TcpEndpoint::peer_at(Rank rank) {
  LOCKSTEP_CHECK(rank >= 0 && rank < world() && rank != rank_, fmt::format("no peer has rank {}", rank));
  return *peers_[rank];
}

// --- Memory.

Bytes TcpEndpoint::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (memory == nullptr) {
    throw UsageError(
        fmt::format("cannot allocate {} bytes: the memory of this host does not suffice", bytes));
  }
  std::memset(memory, 0, bytes);
  allocated_.emplace(memory, bytes);
  return {memory, bytes};
}

void TcpEndpoint::release(Bytes memory) {
  if (memory.empty()) return;
  const auto found = allocated_.find(memory.data());
  LOCKSTEP_CHECK(found != allocated_.end() && found->second == memory.size(),
                 "release() of what allocate() did not return");
  allocated_.erase(found);
  ::operator delete(memory.data(), kAlignment);
}

// --- Notices.

void TcpEndpoint::publish(StreamId stream, std::uint64_t index, const NoticeHead& head) {
  own_notices_[stream] = {.index = index, .head = head};
}

void TcpEndpoint::fail(StreamId stream, std::string_view why) {
  if (!failed_.insert(stream).second) return;
  for (const auto& peer : peers_) {
    if (peer != nullptr) peer->send_failure(stream, why);
  }
}

// A peer that reads makes room in time; for one that does not, the reports stay queued as anything else.
void TcpEndpoint::pass_on_failures(Deadline deadline) {
  while (!deadline.passed()) {
    bool owed = false;
    bool moved = false;
    for (const auto& peer : peers_) {
      if (peer == nullptr || !peer->owes_failure()) continue;
      owed = true;
      moved |= peer->pump();
    }
    if (!owed) return;
    if (!moved) std::this_thread::sleep_for(kFarewellPause);
  }
}

void TcpEndpoint::push_notice(Rank peer, StreamId stream) {
  const auto newest = own_notices_.find(stream);
  if (newest == own_notices_.end()) return;
  peer_at(peer).send_notice(stream, newest->second.index, newest->second.head);
}

std::uint64_t TcpEndpoint::notices_of(Rank peer, StreamId stream) {
  peer_at(peer).pump();
  return peer_at(peer).notices().count(stream);
}

std::optional<NoticeHead> TcpEndpoint::notice_of(Rank peer, StreamId stream, std::uint64_t index) {
  peer_at(peer).pump();
  return peer_at(peer).notices().head(stream, index);
}

std::optional<std::string> TcpEndpoint::failure_of(Rank peer, StreamId stream) {
  peer_at(peer).pump();
  return peer_at(peer).notices().failure(stream);
}

bool TcpEndpoint::alive(Rank peer) {
  if (peer == rank_) return true;
  // While the last bytes of a dead peer keep coming in, its messages may yet be complete.
  return peer_at(peer).pump() || peer_at(peer).is_connected();
}

// --- Sleeping.

bool TcpEndpoint::prepare_wait() {
  bool may_sleep = true;
  for (Rank rank = 0; rank < world(); ++rank) {
    if (rank == rank_) continue;
    Peer& peer = *peers_[rank];
    if (peer.has_output() && peer.flush()) may_sleep = false;
    update_watches(rank);
    may_sleep &= std::none_of(peer.links().begin(), peer.links().end(),
                              [](const Link& link) { return link.has_buffered(); });
  }
  if (progress_.channels > 0 && !std::exchange(progress_.told, true)) return false;
  return may_sleep;
}

void TcpEndpoint::finish_wait() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kBellTag) {
      std::uint64_t rings = 0;
      [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof(rings));
      continue;
    }
    // Also what nobody is waiting for, or the descriptor would stay readable.
    peers_[events[i].data.u64]->pump();
  }
}

void TcpEndpoint::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(bell_.get(), &one, sizeof(one));
}

void TcpEndpoint::watch(Link& link, Rank rank, bool for_writing, int operation) {
  epoll_event event{.events = for_writing ? EPOLLIN | EPOLLOUT : EPOLLIN,
                    .data = {.u64 = static_cast<std::uint64_t>(rank)}};
  const int result = ::epoll_ctl(poller_.get(), operation, link.fd(), &event);
  LOCKSTEP_CHECK(result == 0, fmt::format("epoll_ctl: {}", std::strerror(errno)));
}

// Only before a sleep, and only for links whose state changed: streaming never comes here.
void TcpEndpoint::update_watches(Rank rank) {
  std::vector<Link>& links = peers_[rank]->links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool wanted = links[i].is_open() && links[i].is_blocked();
    if (!links[i].is_open() || watched_writing_[rank][i] == wanted) continue;
    watched_writing_[rank][i] = wanted;
    watch(links[i], rank, wanted, EPOLL_CTL_MOD);
  }
}

}  // namespace
}  // namespace lockstep::transport::tcp

namespace lockstep::transport {

std::unique_ptr<Endpoint> connect_tcp(const TcpOptions& options, Deadline deadline) {
  return std::make_unique<tcp::TcpEndpoint>(options.rank, options.credentials.me.generation,
                                            connect_tcp_mesh(options, deadline));
}

}  // namespace lockstep::transport
