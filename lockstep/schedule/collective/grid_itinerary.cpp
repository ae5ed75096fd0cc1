// SPDX-License-Identifier: Apache-2.0
//
// all_to_all on a grid: a parcel goes along the row of its origin to the column of its destination, and along
// that column to it. Rows and columns are rings where the grid is a torus, and lines where it is not.
#include "lockstep/schedule/collective/itinerary.h"
#include "lockstep/schedule/collective/mesh.h"

namespace lockstep::schedule {
namespace {

Itinerary along(Rank position, int length, bool torus) {
  return is_ring(length, torus) ? ring_itinerary(position, length) : line_itinerary(position, length);
}

}  // namespace

Itinerary mesh_itinerary(Rank rank, const GridShape& grid) {
  const auto at = [&](int row, int column) { return row * grid.columns + column; };
  const int my_row = rank / grid.columns;
  const int my_column = rank % grid.columns;
  Party row;
  for (int column = 0; column < grid.columns; ++column) row.members.push_back(at(my_row, column));
  row.parcels = [&](int a, int b) {
    std::vector<Parcel> parcels;
    for (int target = 0; target < grid.rows; ++target) parcels.push_back({at(my_row, a), at(target, b)});
    return parcels;
  };
  Party column;
  for (int each = 0; each < grid.rows; ++each) column.members.push_back(at(each, my_column));
  column.parcels = [&](int a, int b) {
    std::vector<Parcel> parcels;
    for (int source = 0; source < grid.columns; ++source) {
      parcels.push_back({at(a, source), at(b, my_column)});
    }
    return parcels;
  };
  Itinerary itinerary;
  append(itinerary, along(my_column, grid.columns, grid.torus), row);
  append(itinerary, along(my_row, grid.rows, grid.torus), column);
  return itinerary;
}

}  // namespace lockstep::schedule
