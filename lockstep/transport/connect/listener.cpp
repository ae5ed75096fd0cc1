// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/listener.h"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/eventfd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/transport/connect/peer_user.h"
#include "lockstep/transport/connect/socket.h"
#include "lockstep/transport/connect/stranger.h"
#include "lockstep/transport/connect/stream.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{20};

Descriptor open_checked(const Address& address, const Credentials& credentials) {
  if (!is_loopback(address) && credentials.prove_nothing()) {
    throw UsageError(
        fmt::format("will not listen on {} without a secret or TLS, for anyone could join: make a "
                    "secret with `lockstep keygen FILE`, copy it to all hosts and set LOCKSTEP_SECRET_FILE",
                    address.to_string()));
  }
  return open_listening_socket(address);
}

Descriptor open_event() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw std::system_error(errno, std::generic_category());
  return event;
}

}  // namespace

class Listener::Impl {
 public:
  Impl(const Address& address, Credentials credentials, ListenerLimits limits)
      : credentials_(std::move(credentials)),
        limits_(limits),
        socket_(open_checked(address, credentials_)),
        address_(bound_address(socket_.get(), address)),
        watch_(io_, socket_.get()),
        pause_(io_),
        news_(open_event()) {
    // Checks our identity here, where the caller can see the error.
    const Handshake trial(Side::listener, credentials_.me, credentials_.secret, Nonce{});
    wait_for_strangers();
    thread_ = std::jthread([this] { run(); });
  }

  ~Impl() {
    io_.stop();
    thread_.join();
    for (const auto& stranger : strangers_) stranger->drop();
  }

  const Address& address() const { return address_; }

  AuthenticatedConnection accept(Deadline deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, stop, deadline.left(), [&] { return !ready_.empty() || stopped_; })) {
      if (stop.stop_requested()) {
        throw Aborted(fmt::format("waiting at {} was given up", address_.to_string()));
      }
      throw Timeout(fmt::format(
          "nobody connected to {} within {:.1f} s ({} refused, {} too slow)", address_.to_string(),
          std::chrono::duration<double>(deadline.waited()).count(), counters_.refused, counters_.timed_out));
    }
    return take_first();
  }

  std::optional<AuthenticatedConnection> try_accept() {
    const std::lock_guard lock(mutex_);
    if (ready_.empty() && !stopped_) return std::nullopt;
    return take_first();
  }

  int fd() const { return news_.get(); }

  ListenerCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  AuthenticatedConnection take_first() {
    if (ready_.empty()) {
      throw CommError(fmt::format("{} accepts no more connections: {}", address_.to_string(), *stopped_));
    }
    AuthenticatedConnection first = std::move(ready_.front());
    ready_.pop_front();
    eventfd_t count = 0;
    if (ready_.empty() && !stopped_) ::eventfd_read(news_.get(), &count);
    return first;
  }

  void tell() {
    ::eventfd_write(news_.get(), 1);
    arrived_.notify_all();
  }

  // What no single stranger is to blame for ends the listener, and accept() says so.
  void run() {
    try {
      io_.run();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      stopped_ = error.what();
      tell();
    }
  }

  void wait_for_strangers() {
    watch_.async_wait(Watch::wait_read, [this](const asio::error_code& error) {
      if (!error) take_strangers();
    });
  }

  // A few at a time, so that those who are already talking get their turn.
  void take_strangers() {
    for (int i = 0; i < 16; ++i) {
      int error = 0;
      if (take_stranger(error)) continue;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) return pause();
      if (error == EAGAIN) break;
    }
    wait_for_strangers();
  }

  // False when nobody was there, for the reason `error`.
  bool take_stranger(int& error) {
    try {
      Descriptor socket = accept_socket(socket_.get(), error);
      if (!socket) return false;
      admit(std::move(socket));
    } catch (const std::exception& failure) {
      count(&ListenerCounters::refused);
      report("a stranger", failure.what());
    }
    return true;
  }

  // Out of descriptors: gives up the stranger that has waited longest and tries again soon.
  void pause() {
    drop_oldest();
    pause_.expires_after(kPauseWithoutDescriptors);
    pause_.async_wait([this](const asio::error_code& error) {
      if (!error) take_strangers();
    });
  }

  void admit(Descriptor socket) {
    if (!unix_peer_is_our_user(socket.get())) {
      count(&ListenerCounters::refused);
      return report("a process of another user", "it runs as another user");
    }
    // The oldest goes, not the newest: an honest peer needs milliseconds, those who only hold a place are
    // old.
    if (strangers_.size() >= limits_.max_pending) drop_oldest();
    auto connection = make_connection(std::move(socket), credentials_.tls, Side::listener);
    Handshake handshake(Side::listener, credentials_.me, credentials_.secret, random_nonce());
    const auto stranger = std::make_shared<Stranger>(
        io_, std::move(connection), std::move(handshake),
        [this](Stranger& who, Stranger::End end, const std::string& why) { on_end(who, end, why); });
    strangers_.push_back(stranger);
    stranger->start(limits_.handshake_timeout);
  }

  void drop_oldest() {
    if (strangers_.empty()) return;
    const std::shared_ptr<Stranger> oldest = strangers_.front();
    strangers_.pop_front();
    if (oldest->is_pending()) {
      count(&ListenerCounters::overflowed);
      report(oldest->describe(), "too many connections have not proved themselves");
    }
    oldest->drop();
  }

  void on_end(Stranger& who, Stranger::End end, const std::string& why) {
    switch (end) {
      case Stranger::End::accepted:
        deliver(who);
        break;
      case Stranger::End::refused:
        count(&ListenerCounters::refused);
        return report(who.describe(), why);
      case Stranger::End::timed_out:
        count(&ListenerCounters::timed_out);
        return report(who.describe(), why);
      case Stranger::End::drained:
      case Stranger::End::dropped:
        break;
    }
    strangers_.remove_if([&](const std::shared_ptr<Stranger>& one) { return one.get() == &who; });
  }

  void deliver(Stranger& who) {
    if (const auto why = objection_to(who)) {
      count(&ListenerCounters::refused);
      return report(who.describe(), *why);
    }
    if (keep(who)) return;
    count(&ListenerCounters::overflowed);
    report(who.describe(), "too many connections that proved themselves wait to be accepted");
  }

  // Only now, because it takes a look at every socket of the host, which strangers should not get for
  // nothing.
  std::optional<std::string> objection_to(const Stranger& who) const {
    if (!credentials_.prove_nothing()) return std::nullopt;
    try {
      require_tcp_peer_is_our_user(who.fd());
      return std::nullopt;
    } catch (const CommError& error) {
      return error.what();
    }
  }

  // False when there is no room; then it is closed once it has been told of.
  bool keep(Stranger& who) {
    const std::lock_guard lock(mutex_);
    if (ready_.size() >= limits_.max_ready) return false;
    ready_.push_back(who.take());
    ++counters_.accepted;
    tell();
    return true;
  }

  void count(std::uint64_t ListenerCounters::*counter) {
    const std::lock_guard lock(mutex_);
    ++(counters_.*counter);
  }

  void report(const std::string& who, const std::string& why) {
    log::warning(refusals_,
                 fmt::format("{} closed the connection of {}: {}", address_.to_string(), who, why));
  }

  const Credentials credentials_;
  const ListenerLimits limits_;
  Descriptor socket_;
  const Address address_;
  asio::io_context io_;
  Watch watch_;
  asio::steady_timer pause_;
  std::list<std::shared_ptr<Stranger>> strangers_;  // oldest first; shared with their own handlers
  log::RateLimit refusals_{std::chrono::seconds(1)};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any arrived_;
  Descriptor news_;  // an event, set while there is something to accept
  std::deque<AuthenticatedConnection> ready_;
  ListenerCounters counters_;
  std::optional<std::string> stopped_;  // why the thread has ended

  std::jthread thread_;
};

Listener::Listener(const Address& address, Credentials credentials, ListenerLimits limits) try
    : impl_(std::make_unique<Impl>(address, std::move(credentials), limits)) {
} catch (const std::system_error& error) {
  throw CommError(
      fmt::format("cannot listen on {}: {}", address.to_string(), reason_of(error.code().value())));
}

Listener::~Listener() = default;

const Address& Listener::address() const {
  return impl_->address();
}

AuthenticatedConnection Listener::accept(Deadline deadline, const std::stop_token& stop) {
  return impl_->accept(deadline, stop);
}

std::optional<AuthenticatedConnection> Listener::try_accept() {
  return impl_->try_accept();
}

int Listener::fd() const {
  return impl_->fd();
}

ListenerCounters Listener::counters() const {
  return impl_->counters();
}

}  // namespace lockstep::transport
