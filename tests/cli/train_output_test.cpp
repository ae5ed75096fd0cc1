// SPDX-License-Identifier: Apache-2.0
//
// What a run shows while it trains: files for TensorBoard, and the line of a terminal that is written anew.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include "tests/cli/train_program.h"
#include "tests/metrics/event_file.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

// A terminal of so many columns that somebody reads, and changes no letter.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    std::array<char, 64> name = {};
    if (::openpty(&reading_, &writing_, name.data(), nullptr, &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "openpty");
    }
    path_ = name.data();
    termios mode = {};
    ::tcgetattr(writing_, &mode);
    ::cfmakeraw(&mode);
    ::tcsetattr(writing_, TCSANOW, &mode);
    reader_ = std::jthread([this] {
      std::array<char, 4096> buffer = {};
      for (ssize_t got = 0; (got = ::read(reading_, buffer.data(), buffer.size())) > 0;) {
        shown_.append(buffer.data(), static_cast<std::size_t>(got));
      }
    });
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    shown();
    ::close(reading_);
  }

  const std::string& path() const { return path_; }

  // All that was written, once no program has it open any more.
  const std::string& shown() {
    if (reader_.joinable()) {
      ::close(writing_);  // which ends what the reader reads
      reader_.join();
    }
    return shown_;
  }

 private:
  int reading_ = -1;
  int writing_ = -1;
  std::string path_;
  std::string shown_;
  std::jthread reader_;
};

class TrainOutput : public TrainProgram {
 protected:
  // What a terminal of so many columns gets from `lockstep train`.
  std::string shown_on(unsigned short columns, const std::string& flags) {
    Terminal terminal(columns);
    const Finished finished = run_shell("\"$LOCKSTEP\" train " + run_ + " " + flags + " >" + terminal.path());
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return terminal.shown();
  }

  std::vector<json> records_of(const std::string& run) const {
    std::istringstream lines(read_file(folder_.path(run) + "/metrics.jsonl"));
    std::vector<json> records;
    for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
    return records;
  }
};

TEST_F(TrainOutput, TensorBoardGetsEveryFigureOfEveryStep) {
  ASSERT_EQ(train({"--workers", "2", "--metrics.save_tb_folder", "boards/mine", "--job.dump_folder",
                   folder_.path("run")})
                .exit_code,
            0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("run") + "/tensorboard"));
  const std::string boards = folder_.path("run") + "/boards/mine";
  const std::vector<std::string> names = test::names_in(boards);
  ASSERT_EQ(names.size(), 1U) << "only the first worker writes";
  EXPECT_THAT(names[0], StartsWith("events.out.tfevents."));

  const std::vector<test::Event> events = test::read_events(read_file(boards + "/" + names[0]));
  const std::vector<json> records = records_of("run");
  ASSERT_EQ(records.size(), 4U);
  ASSERT_EQ(events.size(), 1 + records.size());
  EXPECT_EQ(events[0].version, "brain.Event:2");
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::map<std::string, float> expected;
    for (const auto& [name, value] : records[i].items()) {
      if (name != "step" && name != "time") expected[name] = static_cast<float>(value.get<double>());
    }
    EXPECT_EQ(events[i + 1].step, records[i]["step"].get<std::int64_t>());
    EXPECT_EQ(events[i + 1].values, expected);
    EXPECT_TRUE(expected.contains("loss"));
  }
  EXPECT_TRUE(events[2].values.contains("validation/loss"));
}

TEST_F(TrainOutput, TensorBoardHasAFolderOfItsOwnUnlessItIsTurnedOff) {
  ASSERT_EQ(train({"--job.dump_folder", folder_.path("on")}).exit_code, 0);
  EXPECT_EQ(test::names_in(folder_.path("on") + "/tensorboard").size(), 1U);
  ASSERT_EQ(
      train({"--metrics.enable_tensorboard", "false", "--job.dump_folder", folder_.path("off")}).exit_code,
      0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("off") + "/tensorboard"));
}

// Every step, though the log gets only those that are due.
TEST_F(TrainOutput, ATerminalShowsProgressInOneLineAndTheLogHasPlainLines) {
  for (const std::string workers : {"1", "2"}) {
    const std::string run = folder_.path("run" + workers);
    const std::string shown =
        shown_on(200, "--metrics.log_freq 3 --workers " + workers + " --job.dump_folder " + run);
    const std::string fields =
        "  loss [0-9.]+  grad [0-9.]+  lr [0-9.e+-]+  [0-9,]+ tok/s  MFU [0-9.]+%  [0-9.]+ [MG]iB";
    EXPECT_THAT(shown, ContainsRegex("\r\x1b\\[Kstep 1/4" + fields + "\r"));
    for (const std::string step : {"2", "3", "4"}) {
      EXPECT_THAT(shown, ContainsRegex("\r\x1b\\[Kstep " + step + "/4" + fields + "  [0-9:]+ left"));
    }
    EXPECT_THAT(shown, ContainsRegex("left\nvalidation loss [0-9.]+ after step 2\n\r"));

    const std::string log = read_file(run + "/log.txt");
    EXPECT_THAT(log, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\x1b")), Not(HasSubstr("step 1/4")),
                           HasSubstr("\nstep 3/4  loss"), HasSubstr("done after 4 of 4 steps")));
    for (const std::string& line : split(log, "\n")) EXPECT_THAT(shown, HasSubstr(line));
  }
}

TEST_F(TrainOutput, ProgressFitsIntoANarrowTerminal) {
  const std::string run = folder_.path("run");
  const std::vector<std::string> pieces = split(shown_on(40, "--job.dump_folder " + run), "\r\x1b[K");
  ASSERT_EQ(pieces.size(), 5U) << "what is said before the first step, and four steps";
  for (std::size_t step = 1; step < pieces.size(); ++step) {
    const std::string line = split(pieces[step], "\n").front();
    EXPECT_THAT(line, StartsWith(std::to_string(step) + "/4 loss "));
    EXPECT_LT(line.size(), 40U) << line;
  }
  EXPECT_THAT(read_file(run + "/log.txt"), HasSubstr("\nstep 1/4  loss"));
}

// A disk that has no room for what is trained is told of before the training.
TEST_F(TrainProgram, AFullDiskIsToldBeforeTheFirstStep) {
  const std::string small = folder_.path("small");
  std::filesystem::create_directory(small);
  const Finished finished = run_shell(
      fmt::format("unshare --mount sh -c 'mount -t tmpfs -o size=100k tmpfs {0} && \"$LOCKSTEP\" train {1} "
                  "--job.dump_folder {0}/run --training.steps 1 --metrics.enable_tensorboard false'",
                  small, run_));
  EXPECT_THAT(finished.output, ContainsRegex("warning: the disk of [^ ]*/small/run has [0-9.]+ MiB left, and "
                                             "what the run writes there needs about [0-9.]+ MiB, with 1 "
                                             "checkpoint at a time: make room"));
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(train({"--training.steps", "1", "--job.dump_folder", folder_.path("large")}).output,
              Not(HasSubstr("the disk of")));
}

// So is one that has room for a checkpoint, and not for all that are kept beside the one that is written:
// once, and not again after a worker was lost.
TEST_F(TrainProgram, ADiskThatIsTooSmallForAllCheckpointsIsToldOfOnce) {
  const std::string small = folder_.path("small");
  std::filesystem::create_directory(small);
  const auto trained = [&](const std::string& flags) {
    const std::string rules =
        fmt::format("train.step.begun@rank=1,step=2,once={}:kill;train.step.begun@rank=0,step=5:throw",
                    folder_.path("died"));
    return run_shell(
               fmt::format("unshare --mount sh -c 'mount -t tmpfs -o size=6m tmpfs {0} && "
                           "LOCKSTEP_FAILPOINTS=\"{1}\" \"$LOCKSTEP\" train {2} --job.dump_folder {0}/run "
                           "--training.steps 40 --workers 2 --training.threads 1 --validation.freq 40 "
                           "--metrics.enable_tensorboard false {3}'",
                           small, rules, run_, flags))
        .output;
  };
  const std::string one = trained("");
  EXPECT_THAT(one, AllOf(HasSubstr("went on after step"), Not(HasSubstr("the disk of"))));
  std::filesystem::remove(folder_.path("died"));
  const std::string all = trained("--checkpoint.interval 1 --checkpoint.keep_last 30");
  EXPECT_THAT(all, AllOf(HasSubstr("went on after step"),
                         ContainsRegex("warning: the disk of .* with 31 checkpoints at a time: make room")));
  EXPECT_EQ(split(all, "the disk of").size(), 2U) << all;
}

}  // namespace
}  // namespace lockstep::testing
