// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {
namespace {

struct Lookup {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  int error = 0;
  std::vector<SocketAddress> found;
};

int look_up(const Address& address, int flags, std::vector<SocketAddress>& found) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  for (const addrinfo* entry = error == 0 ? list : nullptr; entry != nullptr; entry = entry->ai_next) {
    SocketAddress one;
    std::memcpy(&one.storage, entry->ai_addr, entry->ai_addrlen);
    one.length = entry->ai_addrlen;
    found.push_back(one);
  }
  if (error == 0) ::freeaddrinfo(list);
  return error;
}

SocketAddress unix_address(const std::string& name) {
  SocketAddress address;
  auto& unix_part = reinterpret_cast<sockaddr_un&>(address.storage);
  LOCKSTEP_CHECK(name.size() < sizeof(unix_part.sun_path));
  unix_part.sun_family = AF_UNIX;
  std::memcpy(unix_part.sun_path + 1, name.data(), name.size());  // the leading zero makes it abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

std::vector<SocketAddress> resolve(const Address& address, Deadline deadline) {
  if (address.is_unix()) return {unix_address(address.unix_name)};
  std::vector<SocketAddress> numeric;
  if (look_up(address, AI_NUMERICHOST, numeric) == 0) return numeric;

  // getaddrinfo can take long and cannot be interrupted, so it runs in a thread of its own that is left alone
  // at the deadline; the state is shared by that thread and us.
  const auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, address] {
    std::vector<SocketAddress> found;
    const int error = look_up(address, 0, found);
    const std::lock_guard lock(lookup->mutex);
    lookup->error = error;
    lookup->found = std::move(found);
    lookup->done = true;
    lookup->finished.notify_one();
  }).detach();

  std::unique_lock lock(lookup->mutex);
  const bool done = lookup->finished.wait_for(lock, deadline.left(), [&] { return lookup->done; });
  if (!done) throw CommError(fmt::format("looking up the host name {} takes too long", address.host));
  if (lookup->error != 0 || lookup->found.empty()) {
    throw CommError(fmt::format("cannot find the host {}: {}", address.host, ::gai_strerror(lookup->error)));
  }
  return lookup->found;
}

}  // namespace lockstep::transport
