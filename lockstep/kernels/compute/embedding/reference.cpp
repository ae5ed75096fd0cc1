// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include "lockstep/kernels/compute/embedding/check.h"
#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {
namespace {

// Adds to row `sum` of `sums` all rows of `from` for which belongs(row).
template <typename Belongs>
void add_rows(const ConstMatrix& from, const Matrix& sums, std::size_t sum, const Belongs& belongs) {
  std::vector<double> total = row_values(sums, sum);
  for (std::size_t row = 0; row < from.rows; ++row) {
    if (belongs(row)) add_to(total, row_values(from, row));
  }
  store_row(total, sums, sum);
}

}  // namespace

void embedding_forward_reference(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                                 const PlaceTable<ConstMatrix>& by_place, const Matrix& out) {
  check_embedding(table, ids, by_place, out);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    std::vector<double> values = row_values(table, ids[row]);
    if (by_place.table.data != nullptr) add_to(values, row_values(by_place.table, by_place.places.of(row)));
    store_row(values, out, row);
  }
}

void embedding_backward_reference(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                  const Matrix& table_gradient, const PlaceTable<Matrix>& by_place) {
  check_embedding_gradients(ids, out_gradient, table_gradient, by_place);
  for (std::size_t id = 0; id < table_gradient.rows; ++id)
    add_rows(out_gradient, table_gradient, id, [&](std::size_t row) { return ids[row] == id; });
  if (by_place.table.data == nullptr) return;
  const Places& places = by_place.places;
  for (std::size_t place = 0; place < places.length; ++place) {
    add_rows(out_gradient, by_place.table, places.first_place + place,
             [&](std::size_t row) { return row % places.length == place; });
  }
}

void embedding_part_forward_reference(const ConstMatrix& table, const TablePart& part,
                                      std::span<const std::uint32_t> ids, const Matrix& out) {
  check_embedding_part(table, part, ids, out);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] < part.first || ids[row] >= part.first + table.rows) continue;
    std::vector<double> values = row_values(table, ids[row] - part.first);
    add_to(values, std::vector<double>(values.size(), 0.0));
    store_row(values, out, row);
  }
}

void embedding_part_backward_reference(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                       const Matrix& table_gradient, const TablePart& part) {
  check_embedding_part_gradient(ids, out_gradient, table_gradient, part);
  for (std::size_t id = 0; id < table_gradient.rows; ++id)
    add_rows(out_gradient, table_gradient, id, [&](std::size_t row) { return ids[row] == part.first + id; });
}

}  // namespace lockstep::kernels
