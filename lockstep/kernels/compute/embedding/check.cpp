// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/embedding/check.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {
namespace {

void check_place_table(const PlaceTable<ConstMatrix>& by_place, const ConstMatrix& table, std::size_t rows) {
  if (by_place.table.data == nullptr) return;
  check_matrix("embedding: the table of places", by_place.table, by_place.table.rows, table.columns,
               table.dtype);
  check_places("embedding", by_place.places, rows, by_place.table.rows);
}

void check_ids(std::span<const std::uint32_t> ids, std::size_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary) continue;
    throw UsageError(fmt::format(
        "embedding: token {} at row {} is not in the vocabulary of {}; was the text prepared with another "
        "tokenizer?",
        ids[i], i, vocabulary));
  }
}

void check_part(const TablePart& part, std::size_t rows) {
  if (rows <= part.vocabulary && part.first <= part.vocabulary - rows) return;
  throw UsageError(fmt::format("embedding: {} rows from id {} on are more than the vocabulary of {} has",
                               rows, part.first, part.vocabulary));
}

}  // namespace

void check_embedding_part(const ConstMatrix& table, const TablePart& part, std::span<const std::uint32_t> ids,
                          const ConstMatrix& out) {
  check_matrix("embedding: the output", out, ids.size(), table.columns, table.dtype);
  check_part(part, table.rows);
  check_ids(ids, part.vocabulary);
}

void check_embedding_part_gradient(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                   const ConstMatrix& table_gradient, const TablePart& part) {
  check_matrix("embedding: the gradient of the table", table_gradient, table_gradient.rows,
               out_gradient.columns, DType::fp32);
  check_matrix("embedding: the gradient of the output", out_gradient, ids.size(), out_gradient.columns,
               out_gradient.dtype);
  check_part(part, table_gradient.rows);
  check_ids(ids, part.vocabulary);
}

void check_embedding(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                     const PlaceTable<ConstMatrix>& by_place, const ConstMatrix& out) {
  check_place_table(by_place, table, ids.size());
  check_embedding_part(table, {.vocabulary = static_cast<std::uint32_t>(table.rows)}, ids, out);
}

void check_embedding_gradients(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                               const ConstMatrix& table_gradient, const PlaceTable<Matrix>& by_place) {
  check_place_table({by_place.table, by_place.places}, table_gradient, ids.size());
  check_embedding_part_gradient(ids, out_gradient, table_gradient,
                                {.vocabulary = static_cast<std::uint32_t>(table_gradient.rows)});
}

}  // namespace lockstep::kernels
