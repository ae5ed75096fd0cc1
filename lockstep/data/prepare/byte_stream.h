// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

struct z_stream_s;

namespace lockstep::data {

// The content of a file, decompressed when it is gzip (told by its first bytes, whatever its name).
class ByteStream {
 public:
  // "-" is standard input. UsageError when the file cannot be opened. `while_reading` is called before each
  // part of at most 256 KiB, and several times a second while a pipe or a terminal has nothing to read; what
  // it raises ends the reading.
  explicit ByteStream(const std::string& path, std::function<void()> while_reading = {});
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // How many bytes were read; fewer than asked for only at the end. DataError naming the compressed offset
  // when the file is corrupt or cut off, or has more than zeros behind what is compressed.
  std::size_t read(std::span<char> into);

  const std::string& path() const { return path_; }  // as errors call it

 private:
  class Source;

  bool is_gzip();
  std::size_t read_plain(std::span<char> into);
  std::size_t read_gzip(std::span<char> into);
  bool begin_member();
  void skip_padding();
  std::size_t inflate(std::span<char> into);

  std::string path_;
  std::unique_ptr<Source> source_;
  std::optional<bool> is_gzip_;  // once something was read
  std::unique_ptr<z_stream_s> gzip_;
  bool within_member_ = false;  // of a gzip file, which may have several
};

}  // namespace lockstep::data
