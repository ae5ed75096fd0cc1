// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gather_trace.h"

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/log.h"
#include "lockstep/metrics/trace_file.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // bytes, about: so much of a file is in memory
constexpr comm::Options kNumber = {.dtype = DType::int64};
constexpr comm::Options kText = {.dtype = DType::uint8};

Bytes bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

void send_events(metrics::TraceReader& events, const comm::Communicator& world) {
  std::string piece;
  do {
    piece = events.next(kPiece);
    auto size = static_cast<std::int64_t>(piece.size());
    world.send(0, as_writable_bytes_of(size), kNumber);
    if (!piece.empty()) world.send(0, bytes_of(piece), kText);
  } while (!piece.empty());
}

void receive_events(Rank from, metrics::TraceFile& whole, const comm::Communicator& world) {
  for (;;) {
    std::int64_t size = 0;
    world.recv(from, as_writable_bytes_of(size), kNumber);
    if (size == 0) return;
    std::string piece(static_cast<std::size_t>(size), '\0');
    world.recv(from, bytes_of(piece), kText);
    whole.add(piece);
  }
}

void copy_events(metrics::TraceReader& events, metrics::TraceFile& whole) {
  for (std::string piece = events.next(kPiece); !piece.empty(); piece = events.next(kPiece)) whole.add(piece);
}

// 1, or 0 after a warning: no trace is worth a run that has come to its end.
std::int64_t is_done(const std::function<void()>& action) {
  try {
    action();
    return 1;
  } catch (const std::exception& error) {
    log::warning(fmt::format("the traces of single ranks are left as they are: {}", error.what()));
    return 0;
  }
}

}  // namespace

bool gather_trace(const std::filesystem::path& own, const std::filesystem::path& whole,
                  const comm::Communicator& world) {
  const std::filesystem::path unfinished = whole.string() + ".unfinished";
  const bool writes = world.rank() == 0;
  std::optional<metrics::TraceReader> events;
  std::optional<metrics::TraceFile> file;
  std::int64_t is_good = is_done([&] {
    events.emplace(own);
    if (writes) file.emplace(unfinished);
  });
  world.all_reduce(as_writable_bytes_of(is_good), {.dtype = DType::int64, .op = comm::ReduceOp::min});
  if (is_good == 0) return false;
  if (writes) {
    copy_events(*events, *file);
    for (Rank rank = 1; rank < world.size(); ++rank) receive_events(rank, *file, world);
    is_good = file->is_whole() ? 1 : 0;
    file.reset();
    if (is_good != 0) is_good = is_done([&] { std::filesystem::rename(unfinished, whole); });
  } else {
    send_events(*events, world);
  }
  world.broadcast(as_writable_bytes_of(is_good), kNumber);
  std::error_code is_gone;
  if (is_good != 0) std::filesystem::remove(own, is_gone);
  if (is_good == 0 && writes) std::filesystem::remove(unfinished, is_gone);
  return is_good != 0;
}

}  // namespace lockstep::train
