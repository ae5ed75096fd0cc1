// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/tensorboard.h"

#include <array>
#include <bit>
#include <cstdint>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/unix_time.h"
#include "lockstep/metrics/crc32c.h"

namespace lockstep::metrics {
namespace {

// Field numbers with the wire types of protobuf behind them: 0 varint, 1 eight bytes, 2 length and bytes,
// 5 four bytes.
constexpr char field(int number, int wire_type) {
  return static_cast<char>(number << 3 | wire_type);
}

constexpr char kWallTime = field(1, 1);
constexpr char kStep = field(2, 0);
constexpr char kFileVersion = field(3, 2);
constexpr char kSummary = field(5, 2);
constexpr char kValue = field(1, 2);
constexpr char kTag = field(1, 2);
constexpr char kSimpleValue = field(2, 5);

template <typename Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t at = 0; at < sizeof(Unsigned); ++at) bytes += static_cast<char>(value >> (8 * at) & 0xff);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string with_length(std::string_view bytes) {
  return varint(bytes.size()).append(bytes);
}

std::string wall_time(double time_s) {
  return kWallTime + little_endian(std::bit_cast<std::uint64_t>(time_s));
}

std::string encode(const Scalar& scalar) {
  const auto value = std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value));
  return kTag + with_length(scalar.name) + kSimpleValue + little_endian(value);
}

constexpr std::string_view kFilePrefix = "events.out.tfevents.";

std::string file_name(double time_s) {
  std::array<char, 256> host{};
  const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
  return fmt::format("{}{:.0f}.{}.{}", kFilePrefix, time_s, known ? host.data() : "unknown", ::getpid());
}

}  // namespace

std::string tensorboard_record(std::string_view data) {
  const std::string length = little_endian<std::uint64_t>(data.size());
  return length + little_endian(masked_crc32c(length)) + std::string(data) +
         little_endian(masked_crc32c(data));
}

std::string tensorboard_version_event(double time_s) {
  return wall_time(time_s) + kFileVersion + with_length("brain.Event:2");
}

std::string tensorboard_event(const Record& record) {
  std::string summary;
  for (const Scalar& scalar : record.scalars) summary += kValue + with_length(encode(scalar));
  return wall_time(record.time_s) + kStep + varint(static_cast<std::uint64_t>(record.step)) + kSummary +
         with_length(summary);
}

void remove_tensorboard_files(const std::filesystem::path& folder) {
  std::error_code no_folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder, no_folder)) {
    if (entry.path().filename().string().starts_with(kFilePrefix)) std::filesystem::remove(entry.path());
  }
}

TensorBoardSink::TensorBoardSink(const std::filesystem::path& folder)
    : TensorBoardSink(folder, unix_time()) {}

TensorBoardSink::TensorBoardSink(const std::filesystem::path& folder, double time_s)
    : file_(folder / file_name(time_s), OutputFile::Mode::append), time_s_(time_s) {
  has_version_ = file_.write(tensorboard_record(tensorboard_version_event(time_s_)));
}

void TensorBoardSink::write(const Record& record) {
  if (!has_version_) has_version_ = file_.write(tensorboard_record(tensorboard_version_event(time_s_)));
  if (has_version_) file_.write(tensorboard_record(tensorboard_event(record)));
}

}  // namespace lockstep::metrics
