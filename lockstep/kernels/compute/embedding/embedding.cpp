// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/embedding/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "lockstep/kernels/compute/embedding/check.h"
#include "lockstep/kernels/compute/rows/rows.h"
#include "lockstep/kernels/compute/rows/sums.h"

namespace lockstep::kernels {
namespace {

// The rows of each id, in their order: those of id number i among the different ones are
// rows[starts[i]] .. rows[starts[i + 1] - 1].
struct Groups {
  std::vector<std::size_t> rows;
  std::vector<std::size_t> starts;
};

// Kept by the thread, as RowBuffers are.
const Groups& grouped(std::span<const std::uint32_t> ids) {
  thread_local Groups groups;
  groups.rows.resize(ids.size());
  std::iota(groups.rows.begin(), groups.rows.end(), std::size_t{0});
  std::sort(groups.rows.begin(), groups.rows.end(),
            [&](std::size_t a, std::size_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  groups.starts.clear();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || ids[groups.rows[i]] != ids[groups.rows[i - 1]]) groups.starts.push_back(i);
  }
  groups.starts.push_back(ids.size());
  return groups;
}

void add_row(const ConstMatrix& from, std::size_t row, const Matrix& sums, std::size_t sum) {
  const std::span<float> to = RowBuffers::mine().target(RowBuffers::out, sums, sum);
  add(to, RowBuffers::mine().read(RowBuffers::gradient, from, row), to);
}

// Groups whose id is not among the rows from `first` on are left out.
void add_groups(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                const Matrix& table_gradient, std::uint32_t first) {
  const Groups& groups = grouped(ids);
  parallel_for(groups.starts.size() - 1, [&](std::size_t group) {
    const std::uint32_t id = ids[groups.rows[groups.starts[group]]];
    if (id < first || id - first >= table_gradient.rows) return;
    for (std::size_t i = groups.starts[group]; i < groups.starts[group + 1]; ++i)
      add_row(out_gradient, groups.rows[i], table_gradient, id - first);
  });
}

}  // namespace

void embedding_forward(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                       const PlaceTable<ConstMatrix>& by_place, const Matrix& out) {
  check_embedding(table, ids, by_place, out);
  for_each_row(ids.size(), [&](std::size_t row) {
    if (by_place.table.data == nullptr) {
      std::memcpy(out.row(row), table.row(ids[row]), table.columns * size_of(table.dtype));
      return;
    }
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, out, row);
    add(buffers.read(RowBuffers::in, table, ids[row]),
        buffers.read(RowBuffers::second_in, by_place.table, by_place.places.of(row)), result);
    RowBuffers::store(result, out, row);
  });
}

void embedding_backward(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                        const Matrix& table_gradient, const PlaceTable<Matrix>& by_place) {
  check_embedding_gradients(ids, out_gradient, table_gradient, by_place);
  add_groups(ids, out_gradient, table_gradient, 0);
  if (by_place.table.data == nullptr) return;
  const Places& places = by_place.places;
  for_each_row(std::min(places.length, ids.size()), [&](std::size_t place) {
    for (std::size_t row = place; row < ids.size(); row += places.length)
      add_row(out_gradient, row, by_place.table, places.of(row));
  });
}

void embedding_part_forward(const ConstMatrix& table, const TablePart& part,
                            std::span<const std::uint32_t> ids, const Matrix& out) {
  check_embedding_part(table, part, ids, out);
  for_each_row(ids.size(), [&](std::size_t row) {
    if (ids[row] < part.first || ids[row] - part.first >= table.rows) return;
    RowBuffers& buffers = RowBuffers::mine();
    const auto values = buffers.read(RowBuffers::in, table, ids[row] - part.first);
    const auto result = buffers.target(RowBuffers::out, out, row);
    std::transform(values.begin(), values.end(), result.begin(), [](float value) { return value + 0.0F; });
    RowBuffers::store(result, out, row);
  });
}

void embedding_part_backward(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                             const Matrix& table_gradient, const TablePart& part) {
  check_embedding_part_gradient(ids, out_gradient, table_gradient, part);
  add_groups(ids, out_gradient, table_gradient, part.first);
}

}  // namespace lockstep::kernels
