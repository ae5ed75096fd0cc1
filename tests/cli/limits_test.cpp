// SPDX-License-Identifier: Apache-2.0
//
// The program where the system gives less than it asks for: open files, memory, file sizes, and output that
// nobody takes. It says so in one sentence, promptly, and leaves nothing behind.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void expect_sentence(const Finished& finished, int exit_code, const std::string& sentence) {
  EXPECT_EQ(finished.exit_code, exit_code);
  EXPECT_THAT(finished.error_output, StartsWith("lockstep: "));
  EXPECT_THAT(finished.error_output, HasSubstr(sentence));
  EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
}

TEST(OpenFiles, TooFewAreNamedBeforeAnythingStarts) {
  for (const char* command : {"launch -n 5 -- true", "launch -n 5 --prefix -- true",
                              "bench collectives --transport loopback --ranks 4",
                              "bench collectives --transport tcp --ranks 4", "bench collectives --ranks 4"}) {
    const Finished finished = run_shell(std::string("ulimit -n 16; exec \"$LOCKSTEP\" ") + command);
    expect_sentence(finished, 2, "open files, but the limit (ulimit -n) is 16");
  }
}

TEST(OpenFiles, TheLauncherSaysSoWhenTheyRunOutAllTheSame) {
  const Finished finished = run_shell(
      "ulimit -n 17; exec 3<&0 4<&0 5<&0 6<&0 7<&0 8<&0 9<&0; exec \"$LOCKSTEP\" launch -n 2 -- true");
  expect_sentence(finished, 2, "ulimit -n");
}

TEST(Memory, SizesThatDoNotFitAreRefusedBeforeTheyAreTouched) {
  expect_sentence(run_program({"bench", "collectives", "--bytes", "64G", "--ranks", "1024"}), 2,
                  "the largest that fits is --bytes ");
}

TEST(Output, ALostResultIsAFailureOfEveryCommand) {
  for (const char* to : {">/dev/full", ">&-"}) {
    for (const char* command : {"--help", "version", "help launch", "doctor", "doctor --json", "bench --help",
                                "keygen $FOLDER/secret", "launch --prefix -- echo hello",
                                "bench collectives --transport loopback --bytes 4K --turns 5 --turn-ms 1"}) {
      const TemporaryFolder folder;
      const Finished finished =
          run_shell(std::string("exec \"$LOCKSTEP\" ") + command + " " + to, {{"FOLDER", folder.path("")}});
      expect_sentence(finished, 74, "cannot write");
    }
  }
}

TEST(Output, AReaderThatLeavesEndsTheRun) {
  const Finished finished = run_shell(
      "{ \"$LOCKSTEP\" launch -n 2 --prefix -- yes; echo \"code $?\" >&2; } | head -n 1 > /dev/null");
  EXPECT_THAT(finished.error_output,
              HasSubstr("lockstep: cannot write the output of the ranks: Broken pipe"));
  EXPECT_THAT(finished.error_output, HasSubstr("code 74\n"));
}

TEST(TemporaryFiles, AFolderThatCannotBeUsedIsNamed) {
  const TemporaryFolder folder;
  const std::string missing = folder.path("missing");
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    expect_refusal(
        run_program({"bench", "collectives", "--transport", transport}, {{"TMPDIR", missing}}), 2,
        "cannot use TMPDIR=" + missing + " for temporary files: No such file or directory; set TMPDIR");
  }
  expect_refusal(run_program({"bench", "collectives"}, {{"TMPDIR", LOCKSTEP_PROGRAM}}), 2,
                 "Not a directory; set TMPDIR");
}

TEST(FileSize, KeygenLeavesNoHalfWrittenFile) {
  const TemporaryFolder folder;
  // The thread sanitizer writes to a temporary file before the program begins, if it finds where.
  const Finished finished =
      run_shell("ulimit -f 0; TMPDIR=/nonexistent exec \"$LOCKSTEP\" keygen $FOLDER/secret",
                {{"FOLDER", folder.path("")}});
  expect_sentence(finished, 2, "File too large");
  EXPECT_FALSE(std::filesystem::exists(folder.path("secret")));
}

TEST(FileSize, RanksKeepTheDefaultOfTheSignal) {
  // A program that relies on SIGXFSZ must get it although the launcher ignores it.
  const TemporaryFolder folder;
  const Finished finished =
      run_shell("ulimit -f 0; exec \"$LOCKSTEP\" launch -n 1 -- sh -c 'echo x > $FOLDER/file'",
                {{"FOLDER", folder.path("")}});
  EXPECT_EQ(finished.exit_code, 128 + SIGXFSZ) << finished.error_output;
}

}  // namespace
}  // namespace lockstep::testing
