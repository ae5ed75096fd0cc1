// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/json_fields.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kMostNumbers = 64;

class FieldReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FieldReader(Fields fields) : root_(std::move(fields)) {}

  const std::string& reason() const { return reason_; }

  bool start_object(std::size_t) override {
    if (levels_.empty()) return enter(std::move(root_));
    if (in_list()) {
      const auto* list = std::get_if<JsonList>(&levels_.back().list->target);
      return list != nullptr ? enter(list->next()) : wrong_kind();
    }
    const auto* object = target<JsonObject>();
    return object != nullptr ? enter(object->begin()) : wrong_kind();
  }
  bool end_object() override {
    const Level& level = levels_.back();
    for (std::size_t i = 0; i < level.fields.size(); ++i) {
      if (!level.seen[i] && !level.fields[i].is_optional)
        return refuse(fmt::format("{} is missing", path_of(level.fields[i].key)));
    }
    levels_.pop_back();
    return true;
  }
  bool key(std::string& text) override {
    Level& level = levels_.back();
    const auto found = std::find_if(level.fields.begin(), level.fields.end(),
                                    [&](const Field& field) { return field.key == text; });
    if (found == level.fields.end()) return refuse(fmt::format("{} is no known key", path_of(text)));
    const auto place = static_cast<std::size_t>(found - level.fields.begin());
    if (level.seen[place]) return refuse(fmt::format("{} comes twice", path_of(text)));
    level.seen[place] = true;
    level.current = &*found;
    return true;
  }
  bool start_array(std::size_t) override {
    if (target<JsonList>() == nullptr && target<std::vector<std::int64_t>*>() == nullptr) return wrong_kind();
    levels_.push_back({.fields = {}, .seen = {}, .current = nullptr, .list = levels_.back().current});
    return true;
  }
  bool end_array() override {
    levels_.pop_back();
    return true;
  }

  bool string(std::string& text) override {
    if (auto* const* into = target<std::string*>()) return **into = std::move(text), true;
    if (auto* const* into = target<double*>()) return read_special(text, **into);
    if (const auto* fixed = target<JsonText>()) {
      return text == fixed->expected ||
             refuse(fmt::format("{} is '{}', not '{}'", path(), text, fixed->expected));
    }
    if (auto* const* into = target<Hash*>()) {
      const std::optional<Hash> hash = parse_hash(text);
      if (!hash) return refuse(fmt::format("{} is no hash", path()));
      return **into = *hash, true;
    }
    return wrong_kind();
  }
  bool number_unsigned(std::uint64_t value) override {
    if (const auto* fixed = target<JsonNumber>()) {
      return value == fixed->expected ||
             refuse(fmt::format("{} is {}, but this program knows {}", path(), value, fixed->expected));
    }
    if (auto* const* into = target<std::uint64_t*>()) return **into = value, true;
    if (auto* const* into = target<double*>()) return **into = static_cast<double>(value), true;
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      return refuse(fmt::format("{} is {}, which is too large", path(), value));
    }
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_integer(std::int64_t value) override {
    if (in_list()) return append(value);
    if (auto* const* into = target<std::int64_t*>()) return **into = value, true;
    if (auto* const* into = target<double*>()) return **into = static_cast<double>(value), true;
    return wrong_kind();
  }
  bool number_float(double value, const std::string&) override {
    if (auto* const* into = target<double*>()) return **into = value, true;
    return wrong_kind();
  }
  bool null() override { return wrong_kind(); }
  bool boolean(bool) override { return wrong_kind(); }
  bool binary(nlohmann::json::binary_t&) override { return wrong_kind(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse(fmt::format("it is not valid JSON at byte {}", position));
  }

 private:
  // An object, or a list, whose field is `list`.
  struct Level {
    Fields fields;
    std::vector<bool> seen;
    const Field* current = nullptr;
    const Field* list = nullptr;
  };

  bool in_list() const { return !levels_.empty() && levels_.back().list != nullptr; }

  // Where the value of the current key goes, when that is of this kind.
  template <typename T>
  const T* target() const {
    if (levels_.empty() || levels_.back().current == nullptr) return nullptr;
    return std::get_if<T>(&levels_.back().current->target);
  }

  bool enter(Fields fields) {
    std::vector<bool> seen(fields.size());
    levels_.push_back(
        {.fields = std::move(fields), .seen = std::move(seen), .current = nullptr, .list = nullptr});
    return true;
  }

  bool append(std::int64_t value) {
    auto* const* into = std::get_if<std::vector<std::int64_t>*>(&levels_.back().list->target);
    if (into == nullptr) return wrong_kind();
    if ((*into)->size() == kMostNumbers) {
      return refuse(fmt::format("{} has more than {} numbers", path(), kMostNumbers));
    }
    (*into)->push_back(value);
    return true;
  }

  bool read_special(std::string_view text, double& into) {
    if (text == "nan") return into = std::numeric_limits<double>::quiet_NaN(), true;
    if (text == "inf") return into = std::numeric_limits<double>::infinity(), true;
    if (text == "-inf") return into = -std::numeric_limits<double>::infinity(), true;
    return wrong_kind();
  }

  // "files.pieces.hash"
  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.current != nullptr) text += (text.empty() ? "" : ".") + std::string(level.current->key);
    }
    return text.empty() ? "it" : text;
  }
  // Of a key that is not the current one of its object.
  std::string path_of(std::string_view key) {
    levels_.back().current = nullptr;
    const std::string before = path();
    return before == "it" ? std::string(key) : fmt::format("{}.{}", before, key);
  }

  bool wrong_kind() { return refuse(fmt::format("{} has a value of the wrong kind", path())); }
  bool refuse(std::string why) {
    reason_ = std::move(why);
    return false;
  }

  Fields root_;
  std::vector<Level> levels_;
  std::string reason_;
};

}  // namespace

void read_fields(std::string_view json, const std::string& name, Fields fields) {
  FieldReader reader(std::move(fields));
  if (!nlohmann::json::sax_parse(json, &reader))
    throw DataError(fmt::format("{}: {}", name, reader.reason()));
}

}  // namespace lockstep::checkpoint
