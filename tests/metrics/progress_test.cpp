// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/progress.h"

#include <cmath>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep::metrics {
namespace {

const Progress kProgress = {.step = 120,
                            .total_steps = 600,
                            .loss = 3.14159,
                            .grad_norm = 0.8123,
                            .learning_rate = 9.8e-4,
                            .tokens_per_s = 3170.4,
                            .mfu = 0.541,
                            .memory_bytes = 1331439862,
                            .seconds_left = 151.2};

TEST(ProgressLine, HasEverythingInALog) {
  EXPECT_EQ(
      progress_line(kProgress),
      "step 120/600  loss 3.1416  grad 0.812  lr 9.80e-04  3,170 tok/s  MFU 54.1%  1.24 GiB  2:31 left");
}

TEST(ProgressLine, LeavesOutWhatIsNotKnown) {
  Progress progress = kProgress;
  progress.mfu.reset();
  progress.seconds_left.reset();
  progress.loss = -std::nan("");
  progress.tokens_per_s = 1234567.0;
  progress.memory_bytes = 300 << 20;
  EXPECT_EQ(progress_line(progress),
            "step 120/600  loss nan  grad 0.812  lr 9.80e-04  1,234,567 tok/s  300 MiB");
}

TEST(ProgressLine, FitsAnyTerminal) {
  EXPECT_EQ(progress_line(kProgress, 200), progress_line(kProgress));
  EXPECT_EQ(progress_line(kProgress, 90),
            "step 120/600 loss 3.1416 grad 0.812 lr 9.80e-04 3,170 tok/s MFU 54.1% 1.24 GiB 2:31 left");
  EXPECT_EQ(progress_line(kProgress, 80),
            "120/600 loss 3.142 grad 0.81 lr 9.8e-4 3,170 tok/s MFU 54% 1.2G 2:31 left");
  EXPECT_EQ(progress_line(kProgress, 60), "120/600 loss 3.142 grad 0.81 3,170 tok/s MFU 54% 2:31 left");
  EXPECT_EQ(progress_line(kProgress, 39), "120/600 loss 3.142 3,170 tok/s");
  EXPECT_EQ(progress_line(kProgress, 12), "120/600");
  EXPECT_EQ(progress_line(kProgress, 4), "120/");
  for (int columns = -1; columns < 120; ++columns) {
    EXPECT_LE(progress_line(kProgress, columns).size(), static_cast<std::size_t>(std::max(columns, 0)));
  }
}

// A terminal of 80 columns keeps the last one free.
TEST(ProgressLine, HasEverythingOnAnOrdinaryTerminal) {
  Progress hours = kProgress;
  hours.step = 1200;
  hours.total_steps = 10000;
  hours.tokens_per_s = 480;
  hours.seconds_left = 45655;
  EXPECT_EQ(progress_line(hours, 79),
            "1200/10000 loss 3.142 grad 0.81 lr 9.8e-4 480 tok/s MFU 54% 1.2G 12:40:55 left");
  Progress minutes = kProgress;
  minutes.step = 25;
  minutes.total_steps = 900;
  minutes.tokens_per_s = 11286;
  minutes.memory_bytes = std::uint64_t{294} << 20;
  minutes.learning_rate = 0;
  EXPECT_EQ(progress_line(minutes, 79),
            "25/900 loss 3.142 grad 0.81 lr 0.0e+0 11,286 tok/s MFU 54% 294M 2:31 left");
}

TEST(ProgressLine, GroupsDigits) {
  Progress progress = kProgress;
  for (const auto& [value, text] : {std::pair{0.0, "  0 tok/s"},
                                    {999.0, "  999 tok/s"},
                                    {1000.0, "  1,000 tok/s"},
                                    {100000.0, "  100,000 tok/s"},
                                    {INFINITY, "  inf tok/s"}}) {
    progress.tokens_per_s = value;
    EXPECT_NE(progress_line(progress).find(text), std::string::npos) << progress_line(progress);
  }
}

TEST(FormatNumber, NoNumberHasNoSign) {
  EXPECT_EQ(format_number(3.14159, 4), "3.1416");
  EXPECT_EQ(format_number(-0.5, 1), "-0.5");
  EXPECT_EQ(format_number(-INFINITY, 4), "-inf");
  for (const double sign : {1.0, -1.0}) EXPECT_EQ(format_number(std::copysign(NAN, sign), 4), "nan");
}

TEST(FormatDuration, CoversSecondsToDays) {
  EXPECT_EQ(format_duration(0.4), "0:00");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(3599), "59:59");
  EXPECT_EQ(format_duration(3600), "1:00:00");
  EXPECT_EQ(format_duration(100 * 3600 + 61), "100:01:01");
  EXPECT_EQ(format_duration(-1), "-:--");
  EXPECT_EQ(format_duration(INFINITY), "-:--");
  EXPECT_EQ(format_duration(std::nan("")), "-:--");
}

TEST(TerminalColumns, AreThoseOfTheTerminalOrNone) {
  const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(terminal_columns(file), 0);
  ::close(file);
  const int terminal = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  EXPECT_EQ(terminal_columns(terminal), 80);
  const winsize size = {.ws_row = 24, .ws_col = 133, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_columns(terminal), 133);
  ::close(terminal);
}

}  // namespace
}  // namespace lockstep::metrics
