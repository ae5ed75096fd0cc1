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

constexpr std::string_view kMagic = "lockstep elastic log 2\n";
constexpr std::string_view kMark = "LSGR";
constexpr std::size_t kFrameBytes = kMark.size() + 4 + 8;               // mark, length of the body, checksum
constexpr std::size_t kLeastRecordBytes = kFrameBytes + 8 + 8 + 1 + 4;  // of one without members
constexpr std::size_t kSummedBytes = std::size_t{3} * 8;                // of the head: generation, step, run
constexpr std::size_t kHeadBytes = kMagic.size() + kSummedBytes + 8;    // and the checksum of all
constexpr std::uint64_t kMaxBytes = kHeadBytes + kKeptRecords * (kLeastRecordBytes + 8 * kMaxMembers);
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 62;

std::string_view text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_newest(MessageWriter& writer, const Record& record) {
  writer.number(record.generation).number(static_cast<std::uint64_t>(record.decided + 1));
}

void append_head(std::string& bytes, const Record& newest, RunId run) {
  MessageWriter head;
  write_newest(head, newest);
  head.number(run);
  const std::uint64_t checksum = hash_of(head.body()).low;
  head.number(checksum);
  bytes.append(kMagic).append(text_of(head.body()));
}

void append_record(std::string& bytes, const Record& record) {
  MessageWriter body;
  write_newest(body, record);
  body.number(static_cast<std::uint8_t>(record.is_rollback));
  body.number(static_cast<std::uint32_t>(record.members.size()));
  for (const MemberId member : record.members) body.number(member);
  MessageWriter frame;
  frame.number(static_cast<std::uint32_t>(body.body().size())).number(hash_of(body.body()).low);
  bytes.append(kMark).append(text_of(frame.body())).append(text_of(body.body()));
}

void read_newest(MessageReader& reader, Generation& generation, std::int64_t& decided) {
  generation = reader.number<std::uint64_t>();
  const auto step = reader.number<std::uint64_t>();
  if (generation > kMaxNumber || step > kMaxNumber) reader.fail("an impossible number");
  decided = static_cast<std::int64_t>(step) - 1;
}

Record read_body(ConstBytes body) {
  MessageReader reader(body, "record");
  Record record;
  read_newest(reader, record.generation, record.decided);
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

LogContent read_head(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with(kMagic)) {
    throw DataError(fmt::format("{} at byte 0: not a log of an elastic run, or of another version", path));
  }
  const ConstBytes head = std::as_bytes(std::span(bytes.substr(kMagic.size(), kHeadBytes - kMagic.size())));
  const std::string what = path + " behind its first line";
  MessageReader reader(head, what);
  LogContent content;
  read_newest(reader, content.last_generation, content.decided);
  content.run = reader.number<std::uint64_t>();
  if (reader.number<std::uint64_t>() != hash_of(head.first(kSummedBytes)).low)
    reader.fail("the header is damaged");
  return content;
}

std::string read_if_there(const std::string& path) {
  return std::filesystem::exists(path) ? read_text(path, kMaxBytes) : std::string();
}

}  // namespace

std::string to_bytes(const std::vector<Record>& records, RunId run) {
  std::string bytes;
  append_head(bytes, records.empty() ? Record() : records.back(), run);
  for (const Record& record : records) append_record(bytes, record);
  return bytes;
}

LogContent parse_log(std::string_view bytes, const std::string& path) {
  if (bytes.empty()) return {};
  LogContent content = read_head(bytes, path);
  std::size_t at = kHeadBytes;
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
  const Record newest = content.records.empty() ? Record() : content.records.back();
  if (newest.generation > content.last_generation) {
    throw DataError(fmt::format("{} at byte {}: a record of generation {}, and the header knows of {} only",
                                path, at, newest.generation, content.last_generation));
  }
  content.is_cut =
      at < bytes.size() || newest.generation != content.last_generation || newest.decided != content.decided;
  return content;
}

DecisionLog::DecisionLog(const std::string& path, Disk& disk)
    : DecisionLog(path, disk, read_if_there(path)) {}

DecisionLog::DecisionLog(std::string path, Disk& disk, std::string_view bytes)
    : path_(std::move(path)), disk_(disk), content_(parse_log(bytes, path_)) {}

void DecisionLog::append(const Record& record) {
  std::vector<Record> records = content_.records;
  records.push_back(record);
  if (records.size() > kKeptRecords) records.erase(records.begin());
  replace_file(disk_, path_, to_bytes(records, content_.run));
  content_ = {record.generation, record.decided, content_.run, std::move(records), false};
}

std::vector<MemberId> DecisionLog::last_members() const {
  const bool is_known = !content_.records.empty() && !content_.is_cut;
  return is_known ? content_.records.back().members : std::vector<MemberId>();
}

}  // namespace lockstep::elastic
