// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/byte_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::data {
namespace {

constexpr unsigned kBufferBytes = 1U << 18;
constexpr std::size_t kMaxRead = std::size_t{1} << 30;  // zlib counts in int

}  // namespace

ByteStream::ByteStream(std::string path) : path_(std::move(path)), file_(nullptr) {
  const int fd = path_ == "-" ? ::dup(STDIN_FILENO) : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (path_ == "-") path_ = "standard input";
  if (fd < 0) throw UsageError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  file_ = ::gzdopen(fd, "rb");
  if (file_ == nullptr) {
    ::close(fd);
    throw std::bad_alloc();
  }
  ::gzbuffer(file_, kBufferBytes);
}

ByteStream::~ByteStream() {
  ::gzclose(file_);
}

std::size_t ByteStream::read(std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const int got =
        ::gzread(file_, into.data() + done, static_cast<unsigned>(std::min(into.size() - done, kMaxRead)));
    int code = Z_OK;
    ::gzerror(file_, &code);
    if (got < 0 && code == Z_ERRNO)
      throw UsageError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    // The end of the file within a member is no error to gzread, which only leaves a note of it.
    if (got < 0 || code == Z_BUF_ERROR) {
      bad_file(path_, static_cast<std::uint64_t>(std::max<z_off_t>(0, ::gzoffset(file_))),
               code == Z_BUF_ERROR ? "the compressed data is cut off" : "the compressed data is corrupt");
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace lockstep::data
