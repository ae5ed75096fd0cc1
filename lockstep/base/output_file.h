// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/bytes.h"

namespace lockstep {

// A file written from its begin to its end, through a buffer. UsageError naming file and reason when
// something cannot be written, a full disk included.
class OutputFile {
 public:
  // Makes the file, or keeps the first `keep` bytes of one that is there (which must have as many).
  // `name`: what users know it by, if the path will pass.
  explicit OutputFile(std::string path, std::uint64_t keep = 0, const std::string& name = {});
  ~OutputFile();  // what was not flushed is lost
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(ConstBytes bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  std::uint64_t size() const { return size_; }  // with what is still in the buffer
  void flush();
  void sync();  // flushes, and returns when the bytes are on the disk
  void rename_to(
      const std::string& path);  // syncs, then replaces `path` in one step; nothing is written after

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;
};

// Replaces `path` by `content` in one step: readers see the old file or the new one. Through a link its
// target is replaced, the permissions of a file that is there stay, and what is no file (a pipe, a terminal,
// /dev/full) is written to.
void write_atomically(const std::string& path, std::string_view content);

}  // namespace lockstep
