// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/embedding/embedding.h"

namespace lockstep::kernels {

// UsageError unless all fit each other. The message about an id names its row.
void check_embedding(const ConstMatrix& table, std::span<const std::uint32_t> ids,
                     const PlaceTable<ConstMatrix>& by_place, const ConstMatrix& out);
void check_embedding_gradients(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                               const ConstMatrix& table_gradient, const PlaceTable<Matrix>& by_place);
void check_embedding_part(const ConstMatrix& table, const TablePart& part, std::span<const std::uint32_t> ids,
                          const ConstMatrix& out);
void check_embedding_part_gradient(std::span<const std::uint32_t> ids, const ConstMatrix& out_gradient,
                                   const ConstMatrix& table_gradient, const TablePart& part);

}  // namespace lockstep::kernels
