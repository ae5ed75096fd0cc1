// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/byte_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr int kPollMilliseconds = 100;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // not the bare streams of zlib

bool begins_gzip(std::span<const char> bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

}  // namespace

// What the file holds, as it is.
class ByteStream::Source {
 public:
  Source(const std::string& file, std::string name, std::function<void()> while_reading)
      : name_(std::move(name)),
        while_reading_(std::move(while_reading)),
        // Does not wait for somebody to open the other end of a pipe.
        fd_(file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail();
    if (file != "-") ::fcntl(fd_, F_SETFL, 0);
  }
  ~Source() { ::close(fd_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Whether there are so many bytes in front of us, which a buffer can hold.
  bool has(std::size_t count) {
    while (front().size() < count && !at_end_) load();
    return front().size() >= count;
  }
  std::span<char> front() { return std::span(buffer_).subspan(begin_, end_ - begin_); }
  void skip(std::size_t count) { begin_ += count; }
  std::uint64_t offset() const { return loaded_ - (end_ - begin_); }

 private:
  void load() {
    const std::size_t left = end_ - begin_;
    std::memmove(buffer_.data(), buffer_.data() + begin_, left);
    begin_ = 0;
    end_ = left;
    await();
    ssize_t got = 0;
    do {
      got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail();
    at_end_ = got == 0;
    end_ += static_cast<std::size_t>(got);
    loaded_ += static_cast<std::uint64_t>(got);
  }

  // A read() that waits could be ended by nobody, and finds the end of a pipe that has no writer yet.
  void await() const {
    pollfd entry = {fd_, POLLIN, 0};
    int ready = 0;
    do {
      if (while_reading_) while_reading_();
      ready = ::poll(&entry, 1, kPollMilliseconds);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
  }

  [[noreturn]] void fail() const {
    throw UsageError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }

  std::string name_;
  std::function<void()> while_reading_;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  std::size_t begin_ = 0;  // of what was not taken yet
  std::size_t end_ = 0;
  std::uint64_t loaded_ = 0;
  bool at_end_ = false;
  int fd_;  // the last, for nothing fails behind it
};

ByteStream::ByteStream(const std::string& path, std::function<void()> while_reading)
    : path_(path == "-" ? "standard input" : path),
      source_(std::make_unique<Source>(path, path_, std::move(while_reading))) {}

ByteStream::~ByteStream() {
  if (gzip_) ::inflateEnd(gzip_.get());
}

bool ByteStream::is_gzip() {
  if (!is_gzip_) is_gzip_ = source_->has(2) && begins_gzip(source_->front());
  return *is_gzip_;
}

std::size_t ByteStream::read_plain(std::span<char> into) {
  if (!source_->has(1)) return 0;
  const std::span<char> from = source_->front();
  const std::size_t count = std::min(from.size(), into.size());
  std::memcpy(into.data(), from.data(), count);
  source_->skip(count);
  return count;
}

// False behind the last one, where zeros may stand, which are none of the content.
bool ByteStream::begin_member() {
  if (!source_->has(2) || !begins_gzip(source_->front())) {
    skip_padding();
    return false;
  }
  if (gzip_) {
    ::inflateReset(gzip_.get());
  } else {
    auto stream = std::make_unique<z_stream>();
    if (::inflateInit2(stream.get(), kGzipOnly) != Z_OK) throw std::bad_alloc();
    gzip_ = std::move(stream);
  }
  within_member_ = true;
  return true;
}

void ByteStream::skip_padding() {
  while (source_->has(1)) {
    const std::span<char> front = source_->front();
    const auto other = std::ranges::find_if(front, [](char byte) { return byte != '\0'; });
    source_->skip(static_cast<std::size_t>(other - front.begin()));
    if (other != front.end()) {
      bad_file(path_, source_->offset(), "something that is not compressed follows the compressed data");
    }
  }
}

std::size_t ByteStream::inflate(std::span<char> into) {
  const std::span<char> from = source_->front();
  gzip_->next_in = reinterpret_cast<Bytef*>(from.data());
  gzip_->avail_in = static_cast<uInt>(from.size());
  gzip_->next_out = reinterpret_cast<Bytef*>(into.data());
  gzip_->avail_out = static_cast<uInt>(into.size());
  const int code = ::inflate(gzip_.get(), Z_NO_FLUSH);
  source_->skip(from.size() - gzip_->avail_in);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code != Z_OK && code != Z_STREAM_END)
    bad_file(path_, source_->offset(), "the compressed data is corrupt");
  within_member_ = code == Z_OK;
  return into.size() - gzip_->avail_out;
}

std::size_t ByteStream::read_gzip(std::span<char> into) {
  std::size_t got = 0;
  while (got == 0) {
    if (!within_member_ && !begin_member()) break;
    if (!source_->has(1)) bad_file(path_, source_->offset(), "the compressed data is cut off");
    got = inflate(into);
  }
  return got;
}

std::size_t ByteStream::read(std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::span<char> left = into.subspan(done, std::min(into.size() - done, kBufferBytes));
    const std::size_t got = is_gzip() ? read_gzip(left) : read_plain(left);
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace lockstep::data
