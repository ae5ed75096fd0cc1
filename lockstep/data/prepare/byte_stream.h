// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

struct gzFile_s;

namespace lockstep::data {

// The content of a file, decompressed when it is gzip (told by its first bytes, whatever its name).
class ByteStream {
 public:
  // "-" is standard input. UsageError when the file cannot be opened.
  explicit ByteStream(std::string path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // How many bytes were read; fewer than asked for only at the end. DataError naming the compressed offset
  // when the file is corrupt or cut off.
  std::size_t read(std::span<char> into);

  const std::string& path() const { return path_; }  // as errors call it

 private:
  std::string path_;
  gzFile_s* file_;
};

}  // namespace lockstep::data
