// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/elastic/coordinator.h"
#include "lockstep/metrics/output_file.h"

namespace lockstep::elastic {

// What became of a generation. formed: its members have their places. begun: all of them have what they go on
// from. trained: its first step was decided. lost: it has lost a member. regrouped: it has ended in order,
// for others to join. ended: a member has left, because everything is done or the run was asked to stop.
enum class Turn { formed, begun, trained, lost, regrouped, ended };

struct HistoryEvent {
  Turn turn = Turn::formed;
  Generation generation = 0;
  std::size_t workers = 0;
  std::int64_t step = kNoStep;  // that was decided last
  std::string reason = {};      // of a loss
  bool operator==(const HistoryEvent&) const = default;
};

// Sees from outside what becomes of a coordinator's generations.
class HistoryWatch {
 public:
  // After everything that was handed in to the coordinator: what has happened by it, in order. `reason` is
  // that of a loss, if there was one.
  std::vector<HistoryEvent> look(const Coordinator& coordinator, const std::string& reason);

 private:
  HistoryEvent event(Turn turn, const std::string& reason = {}) const;

  bool is_running_ = false;
  bool has_begun_ = false;
  bool has_trained_ = false;
  bool has_ended_ = false;
  Generation generation_ = 0;
  std::size_t workers_ = 0;
  std::int64_t decided_ = kNoStep;
};

// {"time":1700000000.25,"event":"formed","generation":3,"workers":4,"step":12} and a line break. `time_s` is
// Unix time.
std::string json_line(const HistoryEvent& event, double time_s);

// The history of a run as a file, a line for each event. When it cannot be opened, a warning says so and the
// run goes on without.
class History {
 public:
  // Goes on with a file that is there; an empty path: no history.
  explicit History(const std::string& path);
  ~History();

  void look(const Coordinator& coordinator, const std::string& reason);

 private:
  HistoryWatch watch_;
  std::unique_ptr<metrics::OutputFile> file_;  // null: it cannot be opened, or is not wanted
};

}  // namespace lockstep::elastic
