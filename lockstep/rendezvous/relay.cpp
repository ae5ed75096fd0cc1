// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/relay.h"

#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::rendezvous {
namespace {

constexpr int kMostReads = 16;  // at a time

// O_NONBLOCK on the descriptor itself would change it for all who share it, and stay if we are killed. None
// where that cannot be: files (which never block), sockets, terminals of another user; nor where nothing may
// be written, which must stay so.
transport::Descriptor open_anew(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return {};
  struct stat about {};
  if (::fstat(fd, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return transport::Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// What a stream that is writable takes without blocking, whole lines if possible.
std::string_view next_piece(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text;
  const std::size_t newline = text.rfind('\n', PIPE_BUF - 1);
  return text.substr(0, newline == std::string_view::npos ? PIPE_BUF : newline + 1);
}

}  // namespace

Outlet::Outlet(int fd) : fd_(fd), own_(open_anew(fd)) {}

void Outlet::put(std::string_view text) {
  if (error_ != 0) return;
  text_ += text;
  flush();
}

bool Outlet::writable() const {
  pollfd entry{fd(), POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void Outlet::flush() {
  std::string_view left = text_;
  while (!left.empty() && writable()) {
    const std::string_view piece = next_piece(left);
    const ssize_t put = ::write(fd(), piece.data(), piece.size());
    if (put >= 0) {
      left.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      left = {};
    }
  }
  text_.erase(0, text_.size() - left.size());
}

bool Relay::pump() {
  for (int i = 0; i < kMostReads && to_.has_room(); ++i) {
    const Step step = move_some();
    if (step != Step::moved) return step == Step::nothing;
  }
  return true;
}

void Relay::finish() {
  for (int i = 0; i < kMostReads && move_some() == Step::moved; ++i) continue;
  to_.put(lines_.finish());
}

Relay::Step Relay::move_some() {
  std::array<char, 16'384> buffer;
  pollfd entry{from_.get(), POLLIN, 0};
  if (::poll(&entry, 1, 0) <= 0) return Step::nothing;
  const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return Step::nothing;
  if (got <= 0) return Step::end;
  to_.put(lines_.feed({buffer.data(), static_cast<std::size_t>(got)}));
  return Step::moved;
}

}  // namespace lockstep::rendezvous
