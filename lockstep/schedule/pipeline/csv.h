// SPDX-License-Identifier: Apache-2.0
//
// Pipelines as text. One row per stage; a cell is a pass as to_string() writes it ("F0", "B3", "I3", "W3.1"),
// an empty one is idle time. Columns are for readers: only the order of a row's passes counts, and rows may
// differ in length. A first row "placement,v" puts the chunks in a V; without it, or with
// "placement,round-robin", they are dealt out round-robin.
//
//   F0,F1,  ,B0,  ,B1
//   ,  F0,B0,F1,B1
#pragma once

#include <string>
#include <string_view>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

inline constexpr std::size_t kMaxPipelineCsvBytes = std::size_t{1} << 23;
inline constexpr std::int64_t kMaxCsvCells = std::int64_t{1} << 20;

// The numbers of chunks and micro-batches are those that the cells name. UsageError with row and column, from
// 1, for what is not such text; `name` is the file, for the message. Whether the pipeline works is for
// check_pipeline() to say.
Pipeline parse_pipeline_csv(std::string_view text, std::string_view name);

// One column for each unit of time when every pass takes one; without idle cells when there would be more
// than kMaxCsvCells in all. The pipeline must be one that check_pipeline() accepts.
std::string to_csv(const Pipeline& pipeline);

}  // namespace lockstep::schedule
