// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/kernels/compute/matrix.h"
#include "lockstep/kernels/compute/rows/places.h"

namespace lockstep::kernels {

// A second table by place, as GPT-2 has. Without data there is none.
template <typename Table>
struct PlaceTable {
  Table table;
  Places places;
};

// out[i] = table[ids[i]], plus the row of its place. All matrices have the dtype and the columns of `table`.
// UsageError when shapes do not fit or an id or place is not in its table; nothing is written then.
void embedding_forward(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                       const PlaceTable<ConstMatrix>& by_place, const Matrix& out);

// Adds each row of the gradient to the rows that it was made of. The gradients of the tables are fp32. Rows
// with the same id, or the same place, are added one after the other in their order.
void embedding_backward(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                        const Matrix& table_gradient, const PlaceTable<Matrix>& by_place);

// Some rows of a table that is divided: those of the ids from `first` on.
struct TablePart {
  std::uint32_t first = 0;
  std::uint32_t vocabulary = 0;  // ids of all parts; no other may come
};

// Writes the rows of `out` whose ids the part has, and leaves the others as they are. -0 becomes +0, as it
// does when rows of zeros are added for the parts that do not have the id. UsageError as above.
void embedding_part_forward(const ConstMatrix& table, const TablePart& part,
                            std::span<const std::uint32_t> ids, const Matrix& out);
// Rows of ids that the part does not have add nothing; otherwise as embedding_backward().
void embedding_part_backward(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                             const Matrix& table_gradient, const TablePart& part);

// The same in plain C++, sums in fp64: the twins that tests compare with.
void embedding_forward_reference(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                                 const PlaceTable<ConstMatrix>& by_place, const Matrix& out);
void embedding_backward_reference(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                  const Matrix& table_gradient, const PlaceTable<Matrix>& by_place);
void embedding_part_forward_reference(const ConstMatrix& table, const TablePart& part,
                                      std::span<const std::uint32_t> ids, const Matrix& out);
void embedding_part_backward_reference(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                       const Matrix& table_gradient, const TablePart& part);

}  // namespace lockstep::kernels
