// SPDX-License-Identifier: Apache-2.0
//
// Kernels that work on lanes of a layer: their twins, and who computes which lane does not show.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/kernels/compute/lanes/sum.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/loss/lane_head.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"

namespace lockstep::kernels {
namespace {

std::vector<Tensor> some_lanes(DType dtype, std::size_t lanes, std::size_t elements) {
  std::vector<Tensor> all;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    all.push_back(Tensor::random(dtype, 1, elements, lane + 1));
  return all;
}

std::vector<const std::byte*> pointers(const std::vector<Tensor>& lanes, std::size_t first,
                                       std::size_t count) {
  std::vector<const std::byte*> all;
  for (std::size_t i = first; i < first + count; ++i) all.push_back(lanes[i].bytes().data());
  return all;
}

TEST(SumLanes, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (std::size_t count : {1, 2, 4, 8, 32}) {
      for (std::size_t elements : {0, 1, 1003, 40'000}) {
        const std::vector<Tensor> lanes = some_lanes(dtype, count, elements);
        Tensor found(dtype, 1, elements), expected(dtype, 1, elements);
        sum_lanes(dtype, pointers(lanes, 0, count), found.matrix().data, elements);
        sum_lanes_reference(dtype, pointers(lanes, 0, count), expected.matrix().data, elements);
        EXPECT_EQ(found.bytes(), expected.bytes()) << name_of(dtype) << ", " << count << " lanes";
      }
    }
  }
}

TEST(SumLanes, OfHalvesIsTheSumOfAll) {
  constexpr std::size_t kElements = 20'000;
  for (DType dtype : kFloatTypes) {
    const std::vector<Tensor> lanes = some_lanes(dtype, 8, kElements);
    Tensor all(dtype, 1, kElements);
    sum_lanes(dtype, pointers(lanes, 0, 8), all.matrix().data, kElements);
    for (std::size_t together : {1, 2, 4}) {
      std::vector<Tensor> parts(8 / together, Tensor(dtype, 1, kElements));
      for (std::size_t i = 0; i < parts.size(); ++i) {
        sum_lanes(dtype, pointers(lanes, i * together, together), parts[i].matrix().data, kElements);
      }
      Tensor sum(dtype, 1, kElements);
      sum_lanes(dtype, pointers(parts, 0, parts.size()), sum.matrix().data, kElements);
      EXPECT_EQ(sum.bytes(), all.bytes()) << name_of(dtype) << ", " << together << " together";
    }
  }
}

TEST(SumLanes, MayEndInOneOfTheLanes) {
  std::vector<Tensor> lanes = some_lanes(DType::bf16, 4, 50'000);
  Tensor expected(DType::bf16, 1, 50'000);
  sum_lanes(DType::bf16, pointers(lanes, 0, 4), expected.matrix().data, 50'000);
  sum_lanes(DType::bf16, pointers(lanes, 0, 4), lanes[2].matrix().data, 50'000);
  EXPECT_EQ(lanes[2].bytes(), expected.bytes());
}

TEST(SumLanes, BitsDoNotDependOnTheNumberOfThreads) {
  expect_same_for_any_threads([] {
    const std::vector<Tensor> lanes = some_lanes(DType::bf16, 4, 70'001);
    Tensor sum(DType::bf16, 1, 70'001);
    sum_lanes(DType::bf16, pointers(lanes, 0, 4), sum.matrix().data, 70'001);
    return sum.bytes();
  });
}

TEST(SumLanes, RefusesWhatIsNoTree) {
  const std::vector<Tensor> lanes = some_lanes(DType::fp32, 3, 5);
  Tensor sum(DType::fp32, 1, 5);
  EXPECT_THROW(sum_lanes(DType::fp32, pointers(lanes, 0, 3), sum.matrix().data, 5), UsageError);
  EXPECT_THROW(sum_lanes(DType::fp32, {}, sum.matrix().data, 5), UsageError);
}

TEST(EmbeddingPart, AgreesWithItsTwin) {
  const std::vector<std::uint32_t> ids = {3, 9, 4, 11, 3, 0, 7, 8, 3, 12};
  for (DType dtype : kFloatTypes) {
    for (std::size_t rows : {0, 1, 5}) {
      const Tensor table = Tensor::random(dtype, rows, 19, 1, 3);
      const Tensor dout = Tensor::random(dtype, ids.size(), 19, 2, 1);
      Tensor found = Tensor::random(dtype, ids.size(), 19, 3, 2), expected = found;
      Tensor found_gradient = Tensor::random(DType::fp32, rows, 19, 4), expected_gradient = found_gradient;
      embedding_part_forward(table.matrix(), {4, 13}, ids, found.matrix());
      embedding_part_forward_reference(table.matrix(), {4, 13}, ids, expected.matrix());
      EXPECT_EQ(found.values(), expected.values());
      expect_gaps_untouched(found);
      embedding_part_backward(ids, dout.matrix(), found_gradient.matrix(), {4, 13});
      embedding_part_backward_reference(ids, dout.matrix(), expected_gradient.matrix(), {4, 13});
      if (rows > 0) {
        EXPECT_LE(relative_error(found_gradient.values(), expected_gradient.values()), 2e-6);
      }
    }
  }
}

TEST(EmbeddingPart, PartsMakeUpTheWholeTable) {
  const std::vector<std::uint32_t> ids = {3, 9, 4, 11, 3, 0, 7, 8, 3, 12};
  const Tensor table = Tensor::random(DType::bf16, 13, 8, 1);
  const Tensor dout = Tensor::random(DType::bf16, ids.size(), 8, 2);
  Tensor whole(DType::bf16, ids.size(), 8), parts(DType::bf16, ids.size(), 8);
  Tensor whole_gradient = Tensor::random(DType::fp32, 13, 8, 3), part_gradients = whole_gradient;
  embedding_forward(table.matrix(), ids, {}, whole.matrix());
  embedding_backward(ids, dout.matrix(), whole_gradient.matrix(), {});
  for (const auto& [first, rows] : {std::pair{0, 5}, {5, 5}, {10, 3}}) {
    const TablePart part = {static_cast<std::uint32_t>(first), 13};
    embedding_part_forward(table.matrix().part(first, rows, 0, 8), part, ids, parts.matrix());
    embedding_part_backward(ids, dout.matrix(), part_gradients.matrix().part(first, rows, 0, 8), part);
  }
  EXPECT_EQ(parts.bytes(), whole.bytes());
  EXPECT_EQ(part_gradients.bytes(), whole_gradient.bytes());
}

TEST(EmbeddingPart, BitsDoNotDependOnTheNumberOfThreads) {
  std::vector<std::uint32_t> ids(800);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i * i % 90);
  for (DType dtype : kFloatTypes) {
    const Tensor table = Tensor::random(dtype, 40, 24, 1);
    const Tensor dout = Tensor::random(dtype, ids.size(), 24, 2);
    expect_same_for_any_threads([&] {
      Tensor out(dtype, ids.size(), 24), gradient = Tensor::random(DType::fp32, 40, 24, 3);
      embedding_part_forward(table.matrix(), {30, 90}, ids, out.matrix());
      embedding_part_backward(ids, dout.matrix(), gradient.matrix(), {30, 90});
      return joined({out.bytes(), gradient.bytes()});
    });
  }
}

TEST(EmbeddingPart, HasNoNegativeZeros) {
  Tensor table(DType::bf16, 1, 4), out(DType::bf16, 1, 4);
  for (std::size_t i = 0; i < 4; ++i) reinterpret_cast<std::uint16_t*>(table.matrix().data)[i] = 0x8000;
  embedding_part_forward(table.matrix(), {0, 1}, std::vector<std::uint32_t>{0}, out.matrix());
  for (float value : out.values()) EXPECT_FALSE(std::signbit(value));
}

TEST(EmbeddingPart, RefusesIdsThatNoPartHas) {
  Tensor table(DType::fp32, 2, 4), out(DType::fp32, 3, 4);
  const std::vector<std::uint32_t> ids = {0, 5, 9};
  EXPECT_NO_THROW(embedding_part_forward(table.matrix(), {4, 10}, ids, out.matrix()));
  EXPECT_THROW(embedding_part_forward(table.matrix(), {4, 9}, ids, out.matrix()), UsageError);
  EXPECT_THROW(embedding_part_forward(table.matrix(), {9, 10}, ids, out.matrix()), UsageError);
  EXPECT_THROW(embedding_part_backward(ids, out.matrix(), table.matrix(), {4, 9}), UsageError);
}

// A head whose vocabulary is divided among `lanes`, all of which are computed here by `groups` that follow
// each other: what ranks would do at the same time.
class Divided {
 public:
  Divided(DType dtype, std::size_t tokens, std::size_t width, std::size_t vocabulary, std::size_t lanes)
      : x(Tensor::random(dtype, tokens, width, 1)),
        weight(Tensor::random(dtype, vocabulary, width, 2)),
        dx(dtype, tokens, width),
        dweight(Tensor::random(DType::fp32, vocabulary, width, 3)),
        losses(tokens, -1.0F),
        lanes_(lanes) {
    for (std::size_t i = 0; i < tokens; ++i) {
      targets.push_back(i % 7 == 3 ? kIgnoredTarget
                                   : static_cast<std::uint32_t>((i * 2654435761U) % vocabulary));
    }
    const std::size_t rows = (vocabulary + lanes - 1) / lanes;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t first = std::min(vocabulary, lane * rows);
      const std::size_t count = std::min(rows, vocabulary - first);
      parts.push_back({std::as_const(weight).matrix().part(first, count, 0, width),
                       static_cast<std::uint32_t>(first), dweight.matrix().part(first, count, 0, width)});
    }
  }

  DividedHead part(std::size_t first, std::size_t count) {
    return {.x = std::as_const(x).matrix(),
            .targets = targets,
            .vocabulary = static_cast<std::uint32_t>(weight.matrix().rows),
            .lanes = lanes_,
            .first_lane = first,
            .here = std::span(parts).subspan(first, count),
            .exchange = [](std::span<float>) {}};
  }
  DividedHead whole() { return part(0, lanes_); }

  HeadInputs undivided() const { return {x.matrix(), weight.matrix(), targets}; }

  Tensor x, weight, dx, dweight;
  std::vector<std::uint32_t> targets;
  std::vector<float> losses;
  std::vector<HeadLane> parts;

 private:
  std::size_t lanes_;
};

void expect_like_undivided(DType dtype, std::size_t tokens, std::size_t vocabulary, std::size_t lanes) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << tokens << " tokens, " << vocabulary
                                  << " words, " << lanes << " lanes");
  Divided fast(dtype, tokens, 24, vocabulary, lanes);
  Divided plain(dtype, tokens, 24, vocabulary, lanes);
  lane_head_loss(fast.whole(), fast.losses, 0.25F, fast.dx.matrix());
  head_loss_reference(plain.undivided(), plain.losses,
                      {.scale = 0.25F, .x = plain.dx.matrix(), .weight = plain.dweight.matrix()});
  const double limit = dtype == DType::fp32 ? 1e-5 : 2 * tolerance(dtype);
  EXPECT_LE(relative_error(fast.losses, plain.losses), 1e-5);
  EXPECT_LE(relative_error(fast.dx.values(), plain.dx.values()), limit);
  EXPECT_LE(relative_error(fast.dweight.values(), plain.dweight.values()), limit);
  std::vector<float> alone(tokens);
  lane_head_loss(fast.whole(), alone);
  EXPECT_EQ(alone, fast.losses) << "the loss without gradients has the same bits";
}

TEST(LaneHead, AgreesWithTheUndividedTwin) {
  for (DType dtype : kFloatTypes) {
    for (std::size_t lanes : {1, 2, 4}) {
      expect_like_undivided(dtype, 40, 301, lanes);
      expect_like_undivided(dtype, 9, 5, lanes);  // of four lanes the last has no rows
      expect_like_undivided(dtype, kLossChunk + 9, 33, lanes);
    }
  }
}

// Two passes: the first notes what each group says, the second hears what the others have said.
TEST(LaneHead, WhoComputesALaneDoesNotShow) {
  constexpr std::size_t kLanes = 4, kTokens = 600, kWords = 301;
  for (DType dtype : kFloatTypes) {
    Divided whole(dtype, kTokens, 24, kWords, kLanes);
    std::vector<std::vector<float>> said;
    DividedHead all = whole.whole();
    all.exchange = [&](std::span<float> statistics) {
      said.emplace_back(statistics.begin(), statistics.end());
    };
    lane_head_loss(all, whole.losses, 0.25F, whole.dx.matrix());
    ASSERT_EQ(said.size(), 2U) << "two chunks";
    for (std::size_t here : {1, 2}) {
      Divided parts(dtype, kTokens, 24, kWords, kLanes);
      std::vector<Tensor> sums(kLanes / here, Tensor(dtype, kTokens, 24));
      for (std::size_t group = 0; group < kLanes / here; ++group) {
        DividedHead part = parts.part(group * here, here);
        std::size_t chunk = 0;
        part.exchange = [&](std::span<float> statistics) {
          const std::size_t own = statistics.size() / kLanes * here;
          const auto mine = statistics.subspan(group * own, own);
          EXPECT_TRUE(std::equal(mine.begin(), mine.end(), said[chunk].begin() + group * own));
          std::copy(said[chunk].begin(), said[chunk].end(), statistics.begin());
          ++chunk;
        };
        lane_head_loss(part, parts.losses, 0.25F, sums[group].matrix());
        EXPECT_EQ(parts.losses, whole.losses);
      }
      sum_lanes(dtype, pointers(sums, 0, sums.size()), parts.dx.matrix().data, kTokens * 24);
      EXPECT_EQ(parts.dx.bytes(), whole.dx.bytes());
      EXPECT_EQ(parts.dweight.bytes(), whole.dweight.bytes());
    }
  }
}

TEST(LaneHead, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Divided head(dtype, 600, 64, 903, 4);
      lane_head_loss(head.whole(), head.losses, 0.25F, head.dx.matrix());
      return joined({head.dx.bytes(), head.dweight.bytes(), bytes_of(head.losses)});
    });
  }
}

TEST(LaneHead, LargeLogitsDoNotOverflow) {
  Divided head(DType::fp32, 3, 4, 5, 4);
  for (std::size_t i = 0; i < 12; ++i) reinterpret_cast<float*>(head.x.matrix().data)[i] *= 1e4F;
  lane_head_loss(head.whole(), head.losses, 1.0F, head.dx.matrix());
  for (float loss : head.losses) EXPECT_TRUE(loss >= 0 && loss < 1e6F) << loss;
  for (float value : head.dx.values()) EXPECT_TRUE(std::isfinite(value));
}

TEST(LaneHead, WhatIsNoNumberIsNotHidden) {
  Divided head(DType::fp32, 3, 4, 8, 2);
  reinterpret_cast<float*>(head.x.matrix().data)[0] = std::numeric_limits<float>::quiet_NaN();
  lane_head_loss(head.whole(), head.losses, 1.0F, head.dx.matrix());
  EXPECT_TRUE(std::isnan(head.losses[0]));
  EXPECT_TRUE(std::isfinite(head.losses[1]));
}

TEST(LaneHead, RefusesWhatDoesNotFit) {
  Divided head(DType::fp32, 4, 8, 16, 2);
  head.targets[2] = 16;
  try {
    lane_head_loss(head.whole(), head.losses);
    FAIL() << "must throw";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "head_loss: target 16 of token 2 is not in the vocabulary of 16");
  }
  head.targets[2] = 0;
  DividedHead wrong = head.whole();
  wrong.lanes = 1;
  EXPECT_THROW(lane_head_loss(wrong, head.losses), UsageError);
  Tensor narrow(DType::fp32, 4, 7);
  EXPECT_THROW(lane_head_loss(head.whole(), head.losses, 1.0F, narrow.matrix()), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
