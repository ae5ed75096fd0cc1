// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/decision_log.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/crash_disk.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::elastic {
namespace {

using checkpoint::testing::CrashDisk;
using checkpoint::testing::FailingDisk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<Record> kRecords = {{1, {7, 8}, kNoStep, false}, {2, {8}, 30, false}, {2, {8}, 20, true}};

TEST(DecisionLog, ANewOneKnowsOfNothing) {
  const test::TemporaryFolder folder;
  const DecisionLog log(folder.path("log"));
  EXPECT_EQ(log.last_generation(), 0u);
  EXPECT_THAT(log.last_members(), IsEmpty());
  EXPECT_EQ(log.decided(), kNoStep);
}

TEST(DecisionLog, RemembersWhatWasAppended) {
  const test::TemporaryFolder folder;
  {
    DecisionLog log(folder.path("log"));
    for (const Record& record : kRecords) log.append(record);
  }
  const DecisionLog log(folder.path("log"));
  EXPECT_EQ(log.records(), kRecords);
  EXPECT_EQ(log.last_generation(), 2u);
  EXPECT_THAT(log.last_members(), ElementsAre(8));
  EXPECT_EQ(log.decided(), 20);
}

TEST(DecisionLog, DropsWhatIsOld) {
  const test::TemporaryFolder folder;
  checkpoint::testing::HastyDisk disk;
  DecisionLog log(folder.path("log"), disk);
  for (Generation generation = 1; generation <= kKeptRecords + 3; ++generation)
    log.append({generation, {1}, 5});
  const DecisionLog again(folder.path("log"), disk);
  EXPECT_EQ(again.records().size(), kKeptRecords);
  EXPECT_EQ(again.records().front().generation, 4u);
  EXPECT_EQ(again.last_generation(), kKeptRecords + 3);
}

TEST(DecisionLogProperty, RecordsSurviveTheFile) {
  EXPECT_TRUE(rc::check("to_bytes and parse_log are inverse", [] {
    const auto generations = *rc::gen::container<std::vector<Generation>>(rc::gen::inRange(0, 1 << 30));
    std::vector<Record> records;
    for (const Generation generation : generations) {
      records.push_back({generation, *rc::gen::arbitrary<std::vector<MemberId>>(),
                         *rc::gen::inRange<std::int64_t>(-1, 1 << 30), *rc::gen::arbitrary<bool>()});
    }
    RC_ASSERT(parse_log(to_bytes(records), "log") == (LogContent{records, 0}));
  }));
}

// The largest prefix of kRecords that is good, and what must not be used beside it.
TEST(DecisionLog, ATornTailIsIgnoredButItsNumbersAreNotUsed) {
  const std::string whole = to_bytes(kRecords);
  const std::vector<Record> two(kRecords.begin(), kRecords.end() - 1);
  const std::size_t begin = to_bytes(two).size();
  for (std::size_t size = begin + 1; size < whole.size(); ++size) {
    const LogContent content = parse_log(whole.substr(0, size), "log");
    EXPECT_EQ(content.records, two);
    EXPECT_GE(content.lost_generations, 1u);
  }
  for (std::size_t at = begin; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const LogContent content = parse_log(changed, "log");
    EXPECT_EQ(content.records, two);
    EXPECT_GE(content.lost_generations, 1u);
  }
}

TEST(DecisionLog, AsManyNumbersAreSkippedAsTheTailCanHaveHad) {
  std::vector<Record> records;
  for (Generation generation = 1; generation <= 40; ++generation) records.push_back({generation, {}, 0});
  std::string bytes = to_bytes(records);
  const std::size_t kept = to_bytes({records.begin(), records.begin() + 10}).size();
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kept), bytes.end(), '\0');
  checkpoint::testing::HastyDisk disk;
  const DecisionLog log("log", disk, bytes);
  EXPECT_GE(log.last_generation(), 40u);
  EXPECT_THAT(log.last_members(), IsEmpty());
}

TEST(DecisionLog, DamageBeforeAGoodRecordIsAnError) {
  const std::string whole = to_bytes(kRecords);
  const std::size_t begin = to_bytes({}).size();
  const std::size_t last = to_bytes({kRecords.begin(), kRecords.end() - 1}).size();
  for (std::size_t at = begin; at < last; ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THAT(test::error_of<DataError>([&] { parse_log(changed, "my.log"); }),
                ::testing::AllOf(HasSubstr("my.log at byte"), HasSubstr("a good one follows")))
        << at;
  }
}

TEST(DecisionLog, SomethingElseIsNoLog) {
  for (const char* text : {"x", "lockstep elastic log 2\n", "lockstep elastic lo"}) {
    EXPECT_THAT(test::error_of<DataError>([&] { parse_log(text, "my.log"); }), HasSubstr("my.log at byte 0"));
  }
}

TEST(DecisionLog, ACrashAtAnyMomentLeavesTheOldOrTheNewOne) {
  const test::TemporaryFolder folder;
  std::vector<Record> before;
  std::vector<Record> after;
  int crashes = 0;
  CrashDisk* disk = nullptr;
  const auto crash = [&] {
    for (const auto fate : {CrashDisk::Fate::kept, CrashDisk::Fate::torn, CrashDisk::Fate::lost}) {
      const auto content = disk->after_crash([&](std::size_t) { return fate; });
      const auto found = content.find("log");
      const std::string bytes = found == content.end() ? "" : found->second;
      const LogContent read = parse_log(bytes, "log");
      EXPECT_TRUE(read.records == before || read.records == after);
      EXPECT_EQ(read.lost_generations, 0u);
      ++crashes;
    }
  };
  CrashDisk crashing(folder.path().string(), crash);
  disk = &crashing;
  DecisionLog log(folder.path("log"), crashing, "");
  for (const Record& record : kRecords) {
    after.push_back(record);
    log.append(record);
    before = after;
    crash();  // what was appended stays
  }
  EXPECT_GT(crashes, 20);
}

TEST(DecisionLog, AFullDiskLeavesWhatWasThere) {
  for (int operation = 1;; ++operation) {
    const test::TemporaryFolder folder;
    DecisionLog(folder.path("log")).append(kRecords[0]);
    FailingDisk disk(operation, true);
    DecisionLog log(folder.path("log"), disk);
    try {
      log.append(kRecords[1]);
    } catch (const UsageError&) {
    }
    if (!disk.has_failed()) break;
    const DecisionLog again(folder.path("log"));
    EXPECT_GE(again.records().size(), 1u);
    EXPECT_EQ(again.records().front(), kRecords[0]);
    EXPECT_THAT(log.records(), ElementsAre(kRecords[0])) << "what was not written is not claimed";
  }
}

}  // namespace
}  // namespace lockstep::elastic
