// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/decision_log.h"

#include <algorithm>

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

TEST(DecisionLog, IsThatOfOneRun) {
  const test::TemporaryFolder folder;
  {
    DecisionLog log(folder.path("log"));
    EXPECT_EQ(log.run(), 0u);
    log.begin_run(77);
    for (const Record& record : kRecords) log.append(record);
  }
  DecisionLog log(folder.path("log"));
  EXPECT_EQ(log.run(), 77u);
  log.begin_run(78);
  EXPECT_EQ(DecisionLog(folder.path("log")).run(), 77u);
  log.append({3, {8}, 30, false});
  EXPECT_EQ(DecisionLog(folder.path("log")).run(), 78u);
  EXPECT_EQ(DecisionLog(folder.path("log")).last_generation(), 3u);
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
    std::ranges::sort(records, {}, &Record::generation);
    const auto run = *rc::gen::arbitrary<RunId>();
    const LogContent content = parse_log(to_bytes(records, run), "log");
    RC_ASSERT(content.records == records);
    RC_ASSERT(content.run == run);
    RC_ASSERT(!content.is_cut);
  }));
}

TEST(DecisionLog, ADamagedTailIsLeftOutAndItsNumberIsNotUsedAgain) {
  const std::vector<Record> records = {{1, {7, 8}, kNoStep, false}, {2, {8}, 30, false}, {5, {9}, 40, false}};
  const std::string whole = to_bytes(records);
  const std::vector<Record> two(records.begin(), records.end() - 1);
  const std::size_t begin = to_bytes(two).size();
  const LogContent expected = {.last_generation = 5, .decided = 40, .records = two, .is_cut = true};
  for (std::size_t size = begin; size < whole.size(); ++size) {
    EXPECT_EQ(parse_log(whole.substr(0, size), "log"), expected);
  }
  for (std::size_t at = begin; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_EQ(parse_log(changed, "log"), expected);
  }
}

TEST(DecisionLog, WhoWasInALostGenerationIsNotKnown) {
  std::string bytes = to_bytes(kRecords);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  checkpoint::testing::HastyDisk disk;
  const DecisionLog log("log", disk, bytes);
  EXPECT_EQ(log.last_generation(), 2u);
  EXPECT_EQ(log.decided(), 20);
  EXPECT_THAT(log.last_members(), IsEmpty());
}

TEST(DecisionLog, ADamagedHeaderIsAnError) {
  const std::string whole = to_bytes(kRecords);
  for (std::size_t at = 23; at < to_bytes({}).size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THAT(test::error_of<DataError>([&] { parse_log(changed, "my.log"); }), HasSubstr("my.log")) << at;
  }
  EXPECT_THROW(parse_log(whole.substr(0, 30), "my.log"), DataError);
}

TEST(DecisionLog, ARecordThatIsNewerThanTheHeaderIsAnError) {
  const std::string newer = to_bytes({{9, {1}, 5, false}});
  const std::string header = to_bytes({{8, {1}, 5, false}}).substr(0, to_bytes({}).size());
  EXPECT_THROW(parse_log(header + newer.substr(header.size()), "my.log"), DataError);
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
  for (const char* text : {"x", "lockstep elastic log 1\n", "lockstep elastic lo"}) {
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
      EXPECT_FALSE(read.is_cut);
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
