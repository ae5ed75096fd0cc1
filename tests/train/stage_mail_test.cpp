// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/stage_mail.h"

#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/support/error_of.h"

namespace lockstep::train {
namespace {

using schedule::Payload;
using schedule::PipelineMessage;

constexpr std::int64_t kSize = 5;

// From stage 0 to stage 1.
PipelineMessage activation(int micro_batch) {
  return {Payload::activation, micro_batch, 0, 1, 0, 1};
}

at::Tensor filled(float value, std::int64_t size = kSize) {
  return at::full({size}, value);
}

// Two stages as threads.
void run_stages(const std::function<void(const comm::Communicator&)>& body) {
  std::vector<std::jthread> stages;
  for (auto& endpoint : transport::make_loopback(2)) {
    stages.emplace_back([&body, endpoint = std::move(endpoint)]() mutable {
      body(comm::Communicator(std::move(endpoint), {.name = "pipeline"}));
    });
  }
}

TEST(StageMail, MessagesComeInTheirOrderHoweverFarAheadTheyAreSent) {
  run_stages([](const comm::Communicator& pipeline) {
    StageMail mail(pipeline, {kSize}, at::kFloat);
    for (int step = 0; step < 2; ++step) {
      if (pipeline.rank() == 0) {
        mail.expect({});
        for (int i = 0; i < 8; ++i) mail.send(activation(i), filled(static_cast<float>(8 * step + i)));
        mail.finish();
        continue;
      }
      mail.expect({activation(0), activation(1), activation(2), activation(3), activation(4), activation(5),
                   activation(6), activation(7)});
      for (int i = 0; i < 8; ++i) {
        EXPECT_TRUE(mail.receive(activation(i)).equal(filled(static_cast<float>(8 * step + i))));
      }
    }
  });
}

TEST(StageMail, MemoryIsUsedAgainOnlyOnceNobodyHasIt) {
  run_stages([](const comm::Communicator& pipeline) {
    StageMail mail(pipeline, {kSize}, at::kFloat);
    if (pipeline.rank() == 0) {
      for (int i = 0; i < 6; ++i) mail.send(activation(i), filled(static_cast<float>(i)));
      mail.finish();
      return;
    }
    mail.expect({activation(0), activation(1), activation(2), activation(3), activation(4), activation(5)});
    const at::Tensor kept = mail.receive(activation(0));
    for (int i = 1; i < 6; ++i) mail.receive(activation(i));
    EXPECT_TRUE(kept.equal(filled(0)));
  });
}

TEST(StageMail, WhatIsUnderWayWhenAStepEndsEarlyIsCancelled) {
  std::latch gone(1);
  std::latch told(1);
  run_stages([&](const comm::Communicator& pipeline) {
    // Short ones are sent at once.
    const std::vector<std::int64_t> sizes = {std::int64_t{1} << 20};
    std::optional<StageMail> mail(std::in_place, pipeline, sizes, at::kFloat);
    if (pipeline.rank() == 0) {
      mail->send(activation(0), filled(1, sizes[0]));
      mail.reset();
      gone.count_down();
      told.wait();
      return;
    }
    gone.wait();
    const std::string reason = test::error_of<Aborted>([&] {
      mail->expect({activation(0)});
      mail->receive(activation(0));
    });
    EXPECT_EQ(
        reason,
        "send/recv #0 on pipeline: rank 0 failed: send/recv #0 on pipeline was cancelled by its caller");
    told.count_down();
  });
}

TEST(StageMail, ATakenMessageThatIsNotTheNextIsABug) {
  run_stages([](const comm::Communicator& pipeline) {
    StageMail mail(pipeline, {kSize}, at::kFloat);
    if (pipeline.rank() == 0) return;
    mail.expect({activation(0), activation(1)});
    EXPECT_THROW(mail.receive(activation(1)), InternalError);
  });
}

}  // namespace
}  // namespace lockstep::train
