// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/history.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/unix_time.h"

namespace lockstep::elastic {
namespace {

constexpr std::array kNames = {"formed", "begun", "trained", "lost", "regrouped", "ended"};

}  // namespace

std::vector<HistoryEvent> HistoryWatch::look(const Coordinator& coordinator, const std::string& reason) {
  std::vector<HistoryEvent> events;
  const bool has_ended =
      is_running_ && (!coordinator.is_running() || coordinator.generation() != generation_);
  const bool has_decided = has_begun_ && coordinator.decided() > decided_;
  const std::int64_t decided_before = decided_;
  // A generation that follows may already go on from elsewhere.
  if (!has_ended || has_decided) decided_ = coordinator.decided();
  if (has_decided && !has_trained_) {
    has_trained_ = true;
    events.push_back(event(Turn::trained));
  }
  if (has_ended) {
    is_running_ = false;
    if (!coordinator.has_left()) {
      events.push_back(decided_ > decided_before ? event(Turn::regrouped) : event(Turn::lost, reason));
    }
  }
  if (coordinator.is_running() && !is_running_) {
    is_running_ = true;
    has_begun_ = has_trained_ = false;
    generation_ = coordinator.generation();
    workers_ = coordinator.members().size();
    decided_ = coordinator.decided();
    events.push_back(event(Turn::formed));
  }
  if (is_running_ && coordinator.has_begun() && !has_begun_) {
    has_begun_ = true;
    decided_ = coordinator.decided();
    events.push_back(event(Turn::begun));
  }
  if (coordinator.has_left() && !has_ended_) {
    has_ended_ = true;
    events.push_back(event(Turn::ended));
  }
  return events;
}

HistoryEvent HistoryWatch::event(Turn turn, const std::string& reason) const {
  return {.turn = turn, .generation = generation_, .workers = workers_, .step = decided_, .reason = reason};
}

std::string json_line(const HistoryEvent& event, double time_s) {
  nlohmann::ordered_json line = {{"time", time_s},
                                 {"event", kNames.at(static_cast<std::size_t>(event.turn))},
                                 {"generation", event.generation},
                                 {"workers", event.workers},
                                 {"step", event.step}};
  if (!event.reason.empty()) line["reason"] = event.reason;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

History::History(const std::string& path) {
  if (path.empty()) return;
  try {
    file_ = std::make_unique<metrics::OutputFile>(path, metrics::OutputFile::Mode::append);
  } catch (const UsageError& error) {
    log::warning(fmt::format("the history of the run is not recorded: {}", error.what()));
  }
}

History::~History() = default;

void History::look(const Coordinator& coordinator, const std::string& reason) {
  if (!file_) return;
  for (const HistoryEvent& event : watch_.look(coordinator, reason)) {
    file_->write(json_line(event, unix_time()));
  }
}

}  // namespace lockstep::elastic
