// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/data_message.h"

#include <cstring>

namespace lockstep::elastic::simulation {

std::vector<std::byte> to_bytes(const DataMessage& message) {
  std::vector<std::uint64_t> words;
  const auto add = [&](auto number) { words.push_back(static_cast<std::uint64_t>(number)); };
  add(message.kind);
  add(message.generation);
  add(message.rank);
  add(message.step);
  add(message.round);
  add(message.value);
  add(message.tidings.written);
  add(message.tidings.failed);
  add(message.tidings.committed);
  add(message.tidings.refused);
  add(message.pieces.size());
  for (const Range& piece : message.pieces) {
    add(piece.begin);
    add(piece.end);
  }
  for (const auto& [cell, value] : message.cells) {
    add(cell);
    add(value);
  }
  std::vector<std::byte> bytes(words.size() * sizeof(std::uint64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

DataMessage data_message(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  std::size_t at = 0;
  const auto next = [&] { return words.at(at++); };
  const auto signed_next = [&] { return static_cast<std::int64_t>(next()); };
  DataMessage message;
  message.kind = static_cast<DataMessage::Kind>(next());
  message.generation = next();
  message.rank = static_cast<int>(next());
  message.step = signed_next();
  message.round = signed_next();
  message.value = next();
  message.tidings.written = signed_next();
  message.tidings.failed = signed_next();
  message.tidings.committed = signed_next();
  message.tidings.refused = signed_next();
  for (std::uint64_t pieces = next(); pieces > 0; --pieces) {
    const std::uint64_t begin = next();
    message.pieces.push_back({begin, next()});
  }
  while (at < words.size()) {
    const int cell = static_cast<int>(next());
    message.cells[cell] = next();
  }
  return message;
}

}  // namespace lockstep::elastic::simulation
