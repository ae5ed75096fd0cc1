// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator must not forget when it is started again: which run it is, the numbers of its
// generations, who was in them, and rollbacks. A record for each change of membership, not for each step.
//
// The file is a header with the newest number and step and the run, and records; header and records have
// checksums, and each record a mark and its length. It is small and replaced as a whole by every append
// (replace_file): a crash leaves the old one or the new one, never a part, and no other way of writing a file
// needs to be proved right. As the header tells the newest number once more, no number is used twice when the
// end of the file is damaged. What is older than the last kKeptRecords is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/disk.h"
#include "lockstep/elastic/coordinator.h"

namespace lockstep::elastic {

inline constexpr std::size_t kKeptRecords = 256;

struct LogContent {
  Generation last_generation = 0;
  std::int64_t decided = kNoStep;  // when the last generation was formed or rolled back
  RunId run = 0;
  std::vector<Record> records;
  bool is_cut = false;  // newer records are lost
  bool operator==(const LogContent&) const = default;
};

std::string to_bytes(const std::vector<Record>& records, RunId run = 0);
// DataError naming `path` and the byte where it is not a log, of another version, or damaged in its header or
// before its last good record. What is damaged behind that is left out.
LogContent parse_log(std::string_view bytes, const std::string& path);

class DecisionLog {
 public:
  // Reads it when it is there; `disk` must outlive this. Errors as parse_log() and read_text().
  explicit DecisionLog(const std::string& path, Disk& disk = real_disk());
  // The same for bytes that were read elsewhere.
  DecisionLog(std::string path, Disk& disk, std::string_view bytes);

  // From now on it is the log of this run; on the disk with the next record.
  void begin_run(RunId run) { content_.run = run; }

  // Returns when it is on the disk; Disk's errors, and then what was there before still is.
  void append(const Record& record);

  // For CoordinatorOptions.
  RunId run() const { return content_.run; }
  Generation last_generation() const { return content_.last_generation; }
  std::int64_t decided() const { return content_.decided; }
  std::vector<MemberId> last_members() const;  // none: they are not known
  const std::vector<Record>& records() const { return content_.records; }

 private:
  std::string path_;
  Disk& disk_;
  LogContent content_;
};

}  // namespace lockstep::elastic
