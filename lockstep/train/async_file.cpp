// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/async_file.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

struct Transfer {
  bool writes = false;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  // The first so many are done.
  void advance(std::size_t done) {
    offset += done;
    data += done;
    bytes -= done;
  }
};

[[noreturn]] void raise_failure(const Transfer& transfer, int error) {
  throw DataError(fmt::format("the disk failed to {} {} bytes of a temporary file at {}: {}",
                              transfer.writes ? "write" : "read", transfer.bytes, transfer.offset,
                              error == 0 ? "the file ends there" : std::strerror(error)));
}

int make_file(const std::string& folder, std::uint64_t bytes) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    throw UsageError(fmt::format("cannot make a temporary file in {}: {}", folder, std::strerror(errno)));
  }
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    ::close(fd);
    throw UsageError(
        fmt::format("cannot take {} bytes on the disk of {}: {}", bytes, folder, std::strerror(error)));
  }
  return fd;
}

}  // namespace

class AsyncFile::Queue {
 public:
  virtual ~Queue() = default;
  virtual Means means() const = 0;
  virtual Ticket start(const Transfer& transfer) = 0;
  virtual void wait(Ticket ticket) = 0;
};

namespace {

// The kernel's own queue. A transfer that comes back short is sent on its way again.
class RingQueue final : public AsyncFile::Queue {
 public:
  explicit RingQueue(int fd) : fd_(fd) {
    if (const int error = ::io_uring_queue_init(kEntries, &ring_, 0); error < 0) {
      throw std::system_error(-error, std::generic_category());
    }
  }
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;
  ~RingQueue() override {
    while (!under_way_.empty()) reap();
    ::io_uring_queue_exit(&ring_);
  }

  AsyncFile::Means means() const override { return AsyncFile::Means::io_uring; }

  AsyncFile::Ticket start(const Transfer& transfer) override {
    while (under_way_.size() >= kEntries) reap();
    const AsyncFile::Ticket ticket = next_++;
    submit(ticket, transfer);
    under_way_[ticket] = transfer;
    return ticket;
  }

  void wait(AsyncFile::Ticket ticket) override {
    while (under_way_.contains(ticket)) reap();
    const auto failed = failed_.find(ticket);
    if (failed == failed_.end()) return;
    const auto [transfer, error] = failed->second;
    failed_.erase(failed);
    raise_failure(transfer, error);
  }

 private:
  static constexpr unsigned kEntries = 64;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of one request

  void submit(AsyncFile::Ticket ticket, const Transfer& transfer) {
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    LOCKSTEP_CHECK(entry != nullptr, "there is room for every request");
    const auto bytes = static_cast<unsigned>(std::min(transfer.bytes, kMostBytes));
    if (transfer.writes) {
      ::io_uring_prep_write(entry, fd_, transfer.data, bytes, transfer.offset);
    } else {
      ::io_uring_prep_read(entry, fd_, transfer.data, bytes, transfer.offset);
    }
    // Otherwise what the page cache can answer is copied before the call returns.
    entry->flags |= IOSQE_ASYNC;
    ::io_uring_sqe_set_data64(entry, ticket);
    int submitted = 0;
    do submitted = ::io_uring_submit(&ring_);
    while (submitted == -EINTR);
    LOCKSTEP_CHECK(submitted == 1, "the kernel takes every request");
  }

  void reap() {
    io_uring_cqe* answer = nullptr;
    int error = 0;
    do error = ::io_uring_wait_cqe(&ring_, &answer);
    while (error == -EINTR);
    LOCKSTEP_CHECK(error == 0, "the kernel answers every request");
    const AsyncFile::Ticket ticket = answer->user_data;
    const int result = answer->res;
    ::io_uring_cqe_seen(&ring_, answer);
    const auto found = under_way_.find(ticket);
    if (result > 0) found->second.advance(static_cast<std::size_t>(result));
    const bool again = result == -EINTR || result == -EAGAIN || (result > 0 && found->second.bytes > 0);
    if (again) return submit(ticket, found->second);
    if (result <= 0) failed_[ticket] = {found->second, -result};
    under_way_.erase(found);
  }

  struct Failure {
    Transfer transfer;
    int error = 0;
  };

  int fd_;
  io_uring ring_ = {};
  AsyncFile::Ticket next_ = 0;
  std::map<AsyncFile::Ticket, Transfer> under_way_;
  std::map<AsyncFile::Ticket, Failure> failed_;
};

// One transfer after the other, on a thread.
class ThreadQueue final : public AsyncFile::Queue {
 public:
  explicit ThreadQueue(int fd) : fd_(fd), thread_([this](const std::stop_token& stop) { loop(stop); }) {}

  AsyncFile::Means means() const override { return AsyncFile::Means::thread; }

  AsyncFile::Ticket start(const Transfer& transfer) override {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(next_, transfer);
    changed_.notify_all();
    return next_++;
  }

  void wait(AsyncFile::Ticket ticket) override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done_ > ticket; });
    const auto failed = failed_.find(ticket);
    if (failed == failed_.end()) return;
    const std::exception_ptr error = failed->second;
    failed_.erase(failed);
    std::rethrow_exception(error);
  }

 private:
  // Also ends what is still waiting.
  void loop(const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !waiting_.empty(); });
      if (waiting_.empty()) return;
      auto [ticket, transfer] = waiting_.front();
      lock.unlock();
      std::exception_ptr error;
      try {
        run(transfer);
      } catch (const DataError&) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) failed_[ticket] = error;
      waiting_.pop_front();
      done_ = ticket + 1;
      ended_.notify_all();
    }
  }

  void run(Transfer transfer) const {
    while (transfer.bytes > 0) {
      const auto at = static_cast<off_t>(transfer.offset);
      const ssize_t done = transfer.writes ? ::pwrite(fd_, transfer.data, transfer.bytes, at)
                                           : ::pread(fd_, transfer.data, transfer.bytes, at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) raise_failure(transfer, done == 0 ? 0 : errno);
      transfer.advance(static_cast<std::size_t>(done));
    }
  }

  int fd_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::condition_variable ended_;
  std::deque<std::pair<AsyncFile::Ticket, Transfer>> waiting_;  // the first is under way
  std::map<AsyncFile::Ticket, std::exception_ptr> failed_;
  AsyncFile::Ticket next_ = 0;
  AsyncFile::Ticket done_ = 0;  // all below it
  std::jthread thread_;         // last: it uses the others
};

std::unique_ptr<AsyncFile::Queue> best_queue(int fd) {
  try {
    return std::make_unique<RingQueue>(fd);
  } catch (const std::system_error&) {
    // No io_uring here: an old kernel, or one whose administrator has switched it off.
    return std::make_unique<ThreadQueue>(fd);
  }
}

}  // namespace

AsyncFile::AsyncFile(const std::string& folder, std::uint64_t bytes)
    : fd_(make_file(folder, bytes)), queue_(best_queue(fd_)) {}

AsyncFile::AsyncFile(const std::string& folder, std::uint64_t bytes, Means means)
    : fd_(make_file(folder, bytes)) {
  if (means == Means::io_uring) {
    queue_ = std::make_unique<RingQueue>(fd_);
  } else {
    queue_ = std::make_unique<ThreadQueue>(fd_);
  }
}

AsyncFile::~AsyncFile() {
  queue_.reset();
  ::close(fd_);
}

AsyncFile::Means AsyncFile::means() const {
  return queue_->means();
}

AsyncFile::Ticket AsyncFile::read(std::uint64_t offset, Bytes to) {
  return queue_->start({.writes = false, .offset = offset, .data = to.data(), .bytes = to.size()});
}

AsyncFile::Ticket AsyncFile::write(std::uint64_t offset, ConstBytes from) {
  // Of a write the memory is only read.
  return queue_->start(
      {.writes = true, .offset = offset, .data = const_cast<std::byte*>(from.data()), .bytes = from.size()});
}

void AsyncFile::wait(Ticket ticket) {
  queue_->wait(ticket);
}

std::string_view name_of(AsyncFile::Means means) {
  return means == AsyncFile::Means::io_uring ? "io_uring" : "thread";
}

}  // namespace lockstep::train
