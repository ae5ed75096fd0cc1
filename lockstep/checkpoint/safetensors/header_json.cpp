// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/safetensors/header_json.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kMostDimensions = 64;
constexpr std::uint64_t kLengthBytes = 8;

// Takes the grammar of a header and nothing else, so that no text, however deep or long, builds more than it
// holds.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(DeclaredHeader& header) : header_(header) {}

  // Why the text was refused, and after how many of its bytes when that is known.
  const std::string& reason() const { return reason_; }
  std::size_t position() const { return position_; }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return enter(Place::names);
    if (place_ != Place::names || name_.empty()) return refuse("an object stands where none belongs");
    return enter(in_metadata() ? Place::metadata : Place::tensor);
  }
  bool end_object() override {
    if (place_ == Place::tensor && seen_ != kAllFields) {
      return refuse(fmt::format("tensor '{}' lacks dtype, shape or data_offsets", name_));
    }
    return enter(place_ == Place::names ? Place::outside : Place::names);
  }
  bool key(std::string& text) override {
    if (place_ == Place::names) return begin_entry(text);
    if (place_ == Place::metadata) {
      text_ = &header_.metadata.try_emplace(text).first->second;
      return true;
    }
    return begin_field(text);
  }
  bool string(std::string& text) override {
    if (text_ == nullptr) return refuse("a text stands where none belongs");
    *std::exchange(text_, nullptr) = std::move(text);
    return true;
  }
  bool start_array(std::size_t) override {
    if (numbers_ == nullptr || place_ != Place::tensor) return refuse("a list stands where none belongs");
    return enter(Place::numbers);
  }
  bool end_array() override {
    numbers_ = nullptr;
    return enter(Place::tensor);
  }
  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::numbers) return refuse("a number stands where none belongs");
    if (numbers_->size() == kMostDimensions)
      return refuse(fmt::format("a list of '{}' has more than {} numbers", name_, kMostDimensions));
    numbers_->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t) override { return refuse("a number is negative"); }
  bool number_float(double, const std::string&) override { return refuse("a number is not whole"); }
  bool null() override { return refuse("null stands where a value belongs"); }
  bool boolean(bool) override { return refuse("true or false stands where a value belongs"); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    position_ = position;
    return refuse("the header is not valid JSON");
  }

 private:
  enum class Place { outside, names, metadata, tensor, numbers };
  static constexpr unsigned kAllFields = 7;

  bool in_metadata() const { return name_ == "__metadata__"; }

  bool begin_entry(const std::string& name) {
    name_ = name;
    seen_ = 0;
    if (name.empty()) return refuse("a tensor has no name");
    if (in_metadata()) return std::exchange(had_metadata_, true) ? refuse("__metadata__ comes twice") : true;
    const auto [entry, is_new] = header_.tensors.try_emplace(name);
    tensor_ = &entry->second;
    return is_new ? true : refuse(fmt::format("tensor '{}' comes twice", name));
  }

  bool begin_field(const std::string& name) {
    unsigned field = 0;
    if (name == "dtype") field = 1, text_ = &tensor_->type;
    if (name == "shape") field = 2, numbers_ = &tensor_->shape;
    if (name == "data_offsets") field = 4, numbers_ = &tensor_->data_offsets;
    if (field == 0 || (seen_ & field) != 0) {
      return refuse(fmt::format("tensor '{}' has an unknown or repeated field '{}'", name_, name));
    }
    seen_ |= field;
    return true;
  }

  bool enter(Place place) {
    // A key whose value has another type than it must have.
    if (text_ != nullptr || (numbers_ != nullptr && place != Place::numbers)) {
      return refuse(fmt::format("a value of '{}' has the wrong type", name_));
    }
    place_ = place;
    return true;
  }

  bool refuse(std::string why) {
    reason_ = std::move(why);
    return false;
  }

  DeclaredHeader& header_;
  Place place_ = Place::outside;
  std::string name_;  // of the entry being read
  DeclaredTensor* tensor_ = nullptr;
  unsigned seen_ = 0;  // fields of the tensor
  bool had_metadata_ = false;
  std::string* text_ = nullptr;                    // where the next text goes
  std::vector<std::uint64_t>* numbers_ = nullptr;  // where the next list goes
  std::string reason_;
  std::size_t position_ = 0;
};

}  // namespace

DeclaredHeader read_header_json(std::string_view json, const std::string& name) {
  DeclaredHeader header;
  HeaderReader reader(header);
  // The format begins with a brace; without it a list or number alone would reach the reader.
  if (!json.starts_with('{')) data::bad_file(name, kLengthBytes, "the header does not begin with '{'");
  if (!nlohmann::json::sax_parse(json, &reader)) {
    data::bad_file(name, kLengthBytes + reader.position(), reader.reason());
  }
  return header;
}

}  // namespace lockstep::checkpoint
