// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/data_message.h"

#include <cstring>

namespace lockstep::elastic::simulation {

std::vector<std::byte> to_bytes(const DataMessage& message) {
  std::vector<std::uint64_t> words = {static_cast<std::uint64_t>(message.kind), message.generation,
                                      static_cast<std::uint64_t>(message.rank),
                                      static_cast<std::uint64_t>(message.step), message.value};
  for (const auto& [cell, value] : message.cells) {
    words.push_back(static_cast<std::uint64_t>(cell));
    words.push_back(value);
  }
  std::vector<std::byte> bytes(words.size() * sizeof(std::uint64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

DataMessage data_message(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  DataMessage message = {.kind = static_cast<DataMessage::Kind>(words[0]),
                         .generation = words[1],
                         .rank = static_cast<int>(words[2]),
                         .step = static_cast<std::int64_t>(words[3]),
                         .value = words[4]};
  for (std::size_t i = 5; i < words.size(); i += 2) message.cells[static_cast<int>(words[i])] = words[i + 1];
  return message;
}

}  // namespace lockstep::elastic::simulation
