// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/embedding/embedding.h"

#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"

namespace lockstep::kernels {
namespace {

// Few ids that repeat often, and most of the vocabulary not at all.
std::vector<std::uint32_t> random_ids(std::size_t count, std::uint32_t vocabulary) {
  std::mt19937 generator(9);
  std::uniform_int_distribution<std::uint32_t> any(0, vocabulary - 1);
  std::vector<std::uint32_t> ids(count);
  for (std::uint32_t& id : ids) id = any(generator) * any(generator) / vocabulary;
  return ids;
}

struct Pass {
  Pass(DType dtype, std::size_t batch, Places where, std::size_t columns)
      : ids(random_ids(batch * where.length, 30)),
        table(Tensor::random(dtype, 30, columns, 1, 3)),
        places(Tensor::random(dtype, 40, columns, 2, 1)),
        dout(Tensor::random(dtype, ids.size(), columns, 3, 2)),
        out(dtype, ids.size(), columns, 5),
        dtable(Tensor::random(DType::fp32, 30, columns, 4, 2)),
        dplaces(Tensor::random(DType::fp32, 40, columns, 5, 1)),
        by_place{std::as_const(places).matrix(), where},
        by_place_gradient{dplaces.matrix(), where} {}
  Pass(const Pass&) = delete;

  void run() {
    embedding_forward(table.matrix(), ids, by_place, out.matrix());
    embedding_backward(ids, dout.matrix(), dtable.matrix(), by_place_gradient);
  }
  void run_reference() {
    embedding_forward_reference(table.matrix(), ids, by_place, out.matrix());
    embedding_backward_reference(ids, dout.matrix(), dtable.matrix(), by_place_gradient);
  }

  std::vector<std::uint32_t> ids;
  Tensor table, places, dout, out, dtable, dplaces;
  PlaceTable<ConstMatrix> by_place;
  PlaceTable<Matrix> by_place_gradient;
};

TEST(Embedding, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (bool with_places : {true, false}) {
      for (const Places& where :
           {Places{.length = 0}, Places{.length = 1}, Places{.length = 33, .first_place = 7}}) {
        SCOPED_TRACE(testing::Message()
                     << name_of(dtype) << ", length " << where.length << ", places " << with_places);
        Pass fast(dtype, 5, where, 37);
        Pass plain(dtype, 5, where, 37);
        for (Pass* pass : {&fast, &plain}) {
          if (!with_places) pass->by_place = {}, pass->by_place_gradient = {};
        }
        fast.run();
        plain.run_reference();
        EXPECT_EQ(fast.out.values(), plain.out.values());
        EXPECT_LE(relative_error(fast.dtable.values(), plain.dtable.values()), 2e-6);
        EXPECT_LE(relative_error(fast.dplaces.values(), plain.dplaces.values()), 2e-6);
        for (const Tensor* tensor : {&fast.out, &fast.dtable, &fast.dplaces}) expect_gaps_untouched(*tensor);
      }
    }
  }
}

TEST(Embedding, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Pass pass(dtype, 20, {.length = 40}, 24);
      pass.run();
      return joined({pass.out.bytes(), pass.dtable.bytes(), pass.dplaces.bytes()});
    });
  }
}

TEST(Embedding, NamesTheRowOfAnIdThatIsNotInTheTable) {
  Pass pass(DType::bf16, 2, {.length = 10}, 4);
  pass.ids[13] = 30;
  const std::vector<std::byte> before = pass.out.bytes();
  try {
    pass.run();
    FAIL() << "an id outside of the table was taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("token 30 at row 13"), std::string::npos) << error.what();
  }
  EXPECT_EQ(pass.out.bytes(), before);
  EXPECT_THROW(embedding_backward(pass.ids, pass.dout.matrix(), pass.dtable.matrix(), {}), UsageError);
}

TEST(Embedding, RefusesWhatDoesNotFit) {
  Pass pass(DType::bf16, 2, {.length = 10}, 4);
  Tensor wide(DType::fp32, 20, 4);
  Tensor narrow_gradient(DType::bf16, 30, 4);
  EXPECT_THROW(embedding_forward(pass.table.matrix(), pass.ids, pass.by_place, wide.matrix()), UsageError);
  EXPECT_THROW(embedding_backward(pass.ids, pass.dout.matrix(), narrow_gradient.matrix(), {}), UsageError);
  pass.by_place.places.first_place = 31;  // and 10 places from there on, of 40
  EXPECT_THROW(pass.run(), UsageError);
  pass.by_place.places = {.length = 7};
  EXPECT_THROW(pass.run(), UsageError);
  pass.by_place = {};
  pass.ids.pop_back();
  EXPECT_THROW(pass.run(), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
