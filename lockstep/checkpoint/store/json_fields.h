// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/base/hash.h"

namespace lockstep::checkpoint {

struct Field;
using Fields = std::vector<Field>;

// Called when the object begins: where its values go. What it points to must stay until the object ends.
struct JsonObject {
  std::function<Fields()> begin;
};
// A list of objects; called at the begin of each.
struct JsonList {
  std::function<Fields()> next;
};
// Values that are checked and not kept; what says which format a text has comes first in it.
struct JsonText {
  std::string_view expected;
};
struct JsonNumber {
  std::uint64_t expected;
};

// A key of an object, and where its value goes; what an optional key would change stays when there is none. A
// double may also be "nan", "inf" or "-inf"; a list of
// numbers has at most 64.
struct Field {
  std::string_view key;
  std::variant<std::string*, std::int64_t*, std::uint64_t*, double*, Hash*, std::vector<std::int64_t>*,
               JsonObject, JsonList, JsonText, JsonNumber>
      target;
  bool is_optional = false;
};

// Reads a JSON object that has these keys and no others, each once. DataError naming `name`, the key and what
// is wrong with it otherwise. Takes memory in proportion to the text, whatever the text is.
void read_fields(std::string_view json, const std::string& name, Fields fields);

}  // namespace lockstep::checkpoint
