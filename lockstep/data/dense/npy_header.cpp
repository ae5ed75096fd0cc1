// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/dense/npy_header.h"

#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLengthOffset = 8;  // after magic and two bytes of version

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictionaryReader {
 public:
  DictionaryReader(std::string_view text, std::uint64_t offset, const std::string& path)
      : text_(text), offset_(offset), path_(path) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (place_ != text_.size()) refuse("the header goes on after its end");
    if (!has_type_ || !has_order_ || !has_shape_) refuse("the header lacks descr, fortran_order or shape");
    return header_;
  }

 private:
  void read_entry() {
    const std::string_view key = quoted();
    expect(':');
    if (key == "descr") {
      has_type_ = true;
      if (const std::string_view type = quoted(); type != "<f4") {
        refuse(fmt::format("the values are '{}': save them as float32, '<f4'", type));
      }
    } else if (key == "fortran_order") {
      has_order_ = true;
      if (!accept_word("False")) refuse("the matrix is not in C order: save numpy.ascontiguousarray of it");
    } else if (key == "shape") {
      has_shape_ = true;
      read_shape();
    } else {
      refuse(fmt::format("the header has a field '{}'", key));
    }
  }

  void read_shape() {
    expect('(');
    header_.rows = number();
    expect(',');
    skip_spaces();
    if (peek() == ')') refuse("the array has 1 dimension: a matrix of samples has 2");
    header_.columns = number();
    accept(',');
    if (!accept(')')) refuse("the array has more than 2 dimensions: a matrix of samples has 2");
  }

  std::string_view quoted() {
    skip_spaces();
    const char quote = peek();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, place_ + 1) : text_.npos;
    if (end == text_.npos) refuse("the header is no dictionary of Python: a text is missing");
    const std::string_view found = text_.substr(place_ + 1, end - place_ - 1);
    place_ = end + 1;
    return found;
  }

  std::uint64_t number() {
    skip_spaces();
    std::uint64_t value = 0;
    const char* begin = text_.data() + place_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) refuse("the shape has something that is no whole number of 64 bits");
    place_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(place_).starts_with(word)) return false;
    place_ += word.size();
    return true;
  }
  bool accept(char c) { return accept_word({&c, 1}); }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("the header is no dictionary of Python: '{}' is missing", c));
  }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\n') ++place_;
  }
  char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }

  [[noreturn]] void refuse(const std::string& why) const { bad_file(path_, offset_ + place_, why); }

  std::string_view text_;
  std::uint64_t offset_;  // of the text in the file
  const std::string& path_;
  std::size_t place_ = 0;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
  NpyHeader header_;
};

}  // namespace

NpyHeader read_npy_header(ConstBytes file, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) bad_file(path, 0, "this is no NumPy file: its magic number is missing");
  const int version = text.size() > kMagic.size() ? static_cast<unsigned char>(text[kMagic.size()]) : 0;
  if (version < 1 || version > 3) {
    bad_file(path, kMagic.size(),
             fmt::format("version {} of the format is unknown: 1, 2 and 3 are read", version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = kLengthOffset + length_bytes;
  if (text.size() < begin) bad_file(path, text.size(), "the file ends within its header");
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(text[kLengthOffset + i]);
  }
  if (length > text.size() - begin) {
    bad_file(path, kLengthOffset,
             fmt::format("the header is said to have {} bytes, but {} follow", length, text.size() - begin));
  }
  NpyHeader header = DictionaryReader(text.substr(begin, length), begin, path).read();
  header.data_offset = begin + length;
  return header;
}

}  // namespace lockstep::data
