// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/decision_log.h"

#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/input_file.h"
#include "lockstep/elastic/message_codec.h"
#include "lockstep/transport/connect/message_bytes.h"

namespace lockstep::elastic {
namespace {

using transport::MessageReader;
using transport::MessageWriter;

constexpr std::string_view kMagic = "lockstep elastic log 1\n";
constexpr std::string_view kMark = "LSGR";
constexpr std::size_t kFrameBytes = kMark.size() + 4 + 8;               // mark, length of the body, checksum
constexpr std::size_t kLeastRecordBytes = kFrameBytes + 8 + 8 + 1 + 4;  // of one without members
constexpr std::uint64_t kMaxBytes = kMagic.size() + kKeptRecords * (kLeastRecordBytes + 8 * kMaxMembers);
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 62;

std::string_view text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append_record(std::string& bytes, const Record& record) {
  MessageWriter body;
  body.number(record.generation).number(static_cast<std::uint64_t>(record.decided + 1));
  body.number(static_cast<std::uint8_t>(record.is_rollback));
  body.number(static_cast<std::uint32_t>(record.members.size()));
  for (const MemberId member : record.members) body.number(member);
  MessageWriter frame;
  frame.number(static_cast<std::uint32_t>(body.body().size())).number(hash_of(body.body()).low);
  bytes.append(kMark).append(text_of(frame.body())).append(text_of(body.body()));
}

Record read_body(ConstBytes body) {
  MessageReader reader(body, "record");
  Record record;
  record.generation = reader.number<std::uint64_t>();
  const auto step = reader.number<std::uint64_t>();
  if (record.generation > kMaxNumber || step > kMaxNumber) reader.fail("an impossible number");
  record.decided = static_cast<std::int64_t>(step) - 1;
  const auto flag = reader.number<std::uint8_t>();
  if (flag > 1) reader.fail("an impossible flag");
  record.is_rollback = flag == 1;
  const auto count = reader.number<std::uint32_t>();
  if (count > kMaxMembers) reader.fail("too many members");
  for (std::uint32_t i = 0; i < count; ++i) record.members.push_back(reader.number<std::uint64_t>());
  reader.end();
  return record;
}

struct Found {
  Record record;
  std::size_t bytes = 0;
};

// The record at the begin of `bytes`; none when there is no good one.
std::optional<Found> read_record(std::string_view bytes) {
  if (bytes.size() < kLeastRecordBytes || !bytes.starts_with(kMark)) return std::nullopt;
  const ConstBytes frame = std::as_bytes(std::span(bytes)).subspan(kMark.size());
  MessageReader reader(frame.first(4 + 8), "record");
  const auto length = reader.number<std::uint32_t>();
  const auto checksum = reader.number<std::uint64_t>();
  if (length > bytes.size() - kFrameBytes) return std::nullopt;
  const ConstBytes body = frame.subspan(4 + 8, length);
  if (hash_of(body).low != checksum) return std::nullopt;
  try {
    return Found{read_body(body), kFrameBytes + length};
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Where a good record begins, at `from` or behind it.
std::optional<std::size_t> find_record(std::string_view bytes, std::size_t from) {
  for (std::size_t at = bytes.find(kMark, from); at != bytes.npos; at = bytes.find(kMark, at + 1)) {
    if (read_record(bytes.substr(at))) return at;
  }
  return std::nullopt;
}

std::string read_if_there(const std::string& path) {
  return std::filesystem::exists(path) ? read_text(path, kMaxBytes) : std::string();
}

}  // namespace

std::string to_bytes(const std::vector<Record>& records) {
  std::string bytes(kMagic);
  for (const Record& record : records) append_record(bytes, record);
  return bytes;
}

LogContent parse_log(std::string_view bytes, const std::string& path) {
  LogContent content;
  if (bytes.empty()) return content;
  if (!bytes.starts_with(kMagic)) {
    throw DataError(fmt::format("{} at byte 0: not a log of an elastic run, or of another version", path));
  }
  std::size_t at = kMagic.size();
  while (at < bytes.size()) {
    std::optional<Found> found = read_record(bytes.substr(at));
    if (!found) break;
    at += found->bytes;
    content.records.push_back(std::move(found->record));
  }
  if (const auto next = find_record(bytes, at)) {
    throw DataError(fmt::format("{} at byte {}: the record is damaged, and a good one follows at byte {}",
                                path, at, *next));
  }
  if (at < bytes.size()) content.lost_generations = 1 + (bytes.size() - at) / kLeastRecordBytes;
  return content;
}

DecisionLog::DecisionLog(std::string path, Disk& disk) : DecisionLog(path, disk, read_if_there(path)) {}

DecisionLog::DecisionLog(std::string path, Disk& disk, std::string_view bytes)
    : path_(std::move(path)), disk_(disk), content_(parse_log(bytes, path_)) {}

void DecisionLog::append(const Record& record) {
  std::vector<Record> records = content_.records;
  records.push_back(record);
  if (records.size() > kKeptRecords) records.erase(records.begin());
  replace_file(disk_, path_, to_bytes(records));
  // The new number is beyond those that were lost.
  content_ = {.records = std::move(records), .lost_generations = 0};
}

Generation DecisionLog::last_generation() const {
  const Generation last = content_.records.empty() ? 0 : content_.records.back().generation;
  return last + content_.lost_generations;
}

std::vector<MemberId> DecisionLog::last_members() const {
  const bool is_known = !content_.records.empty() && content_.lost_generations == 0;
  return is_known ? content_.records.back().members : std::vector<MemberId>();
}

std::int64_t DecisionLog::decided() const {
  return content_.records.empty() ? kNoStep : content_.records.back().decided;
}

}  // namespace lockstep::elastic
