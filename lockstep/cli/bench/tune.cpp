// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/tune.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/host_memory.h"
#include "lockstep/cli/bench/coordinator.h"
#include "lockstep/cli/bench/crews.h"
#include "lockstep/cli/bench/footprint.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/output.h"
#include "lockstep/comm/link_model.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;
using schedule::Op;

constexpr std::size_t kSmallMessage = 8;
constexpr std::size_t kLargeMessage = std::size_t{16} << 20;
constexpr std::size_t kShownCandidates = 3;

Pace pace_of(const BenchOptions& options) {
  return {.turns = options.turns, .turn_us = options.turn_ms * 1e3};
}

Contestant part(Crew& crew, const std::string& system, std::size_t bytes) {
  Case what;
  what.system = system;
  what.bytes = bytes;
  return {.crew = &crew, .what = what, .algorithm = system, .transport = {}};
}

// Figures of what went wrong would stay in a file that others choose by.
std::vector<Measurement> measure_correct(const std::vector<Contestant>& contestants, const Pace& pace) {
  std::vector<Measurement> measured = measure(contestants, pace);
  for (const Measurement& one : measured) {
    if (!one.correct) {
      throw InternalError(
          fmt::format("'{}' gave a wrong result; please report this", one.contestant.what.system));
    }
  }
  return measured;
}

// A small message takes latency and handling when each waits for the one before, and handling alone when they
// follow each other without a pause. The least of all turns is taken: what else the machine does is no
// property of the link.
comm::Link measure_link(Crew& crew, const Pace& pace) {
  const auto measured =
      measure_correct({part(crew, "ping", kSmallMessage), part(crew, "stream", kSmallMessage),
                       part(crew, "stream", kLargeMessage)},
                      pace);
  const double alone_us = measured[0].time_us.min;
  const double message_us = measured[1].time_us.min;
  return {.latency_us = std::max(0.0, alone_us - message_us),
          .message_us = message_us,
          .gigabytes_per_second = gigabytes_per_second(kLargeMessage, measured[2].time_us.min)};
}

double measure_adding(Crew& crew, const Pace& pace) {
  const auto measured = measure_correct({part(crew, "add", kLargeMessage)}, pace);
  return gigabytes_per_second(kLargeMessage, measured[0].time_us.min);
}

// Links are between two ranks, whatever the world of the collectives is.
comm::LinkModel measure_model(const BenchOptions& options, const StartCrew& start) {
  comm::LinkModel model;
  // First, because it may be missing.
  if (options.site.transport == "mpi")
    model.mpi = measure_link(*start({.ranks = 2, .transport = "mpi"}), pace_of(options));
  const bool threads = options.site.transport == "loopback";
  const std::unique_ptr<Crew> memory = start({.ranks = 2, .transport = threads ? "loopback" : "shm"});
  model.memory = measure_link(*memory, pace_of(options));
  model.add_gigabytes_per_second = measure_adding(*memory, pace_of(options));
  if (!threads) model.network = measure_link(*start({.ranks = 2, .transport = "tcp"}), pace_of(options));
  return model;
}

Json json_of(const comm::Link& link) {
  return {{"latency_us", link.latency_us},
          {"message_us", link.message_us},
          {"gigabytes_per_second", link.gigabytes_per_second}};
}

std::string text_of(const comm::LinkModel& model, bool json) {
  if (!json) return to_toml(model);
  Json links{{"memory", json_of(model.memory)}, {"network", json_of(model.network)}};
  if (model.mpi) links["mpi"] = json_of(*model.mpi);
  links["add_gigabytes_per_second"] = model.add_gigabytes_per_second;
  return links.dump() + "\n";
}

// A candidate of the selector with what it took.
struct Tried {
  comm::Candidate candidate;
  Spread time_us;
  bool correct = false;
};

std::vector<Tried> try_best(const Case& what, Crew& crew, const BenchOptions& options,
                            const comm::LinkModel& model) {
  const bool exact = what.exactness != Exactness::inexact;
  auto best = comm::candidates(spec_of(what, crew.ranks()), what.dtype, topology_of(options.site),
                               links_of(options.site, model), exact);
  best.resize(std::min(best.size(), kShownCandidates));
  std::vector<Case> cases;
  std::vector<Contestant> contestants;
  for (const comm::Candidate& candidate : best) {
    Case& forced = cases.emplace_back(what);
    forced.algorithm = algorithm_of(candidate);
    contestants.push_back({.crew = &crew, .what = forced, .algorithm = forced.algorithm, .transport = {}});
  }
  require_memory(cases, crew.ranks(), read_host_memory().usable());
  const auto measured = measure(contestants, pace_of(options));
  std::vector<Tried> tried;
  for (std::size_t i = 0; i < best.size(); ++i) {
    tried.push_back({.candidate = best[i], .time_us = measured[i].time_us, .correct = measured[i].correct});
  }
  return tried;
}

std::string json_of(const Case& what, int ranks, const std::vector<Tried>& tried) {
  Json line{
      {"op", name_of(what.op)}, {"ranks", ranks}, {"bytes", what.bytes}, {"dtype", name_of(what.dtype)}};
  line["algorithm"] = algorithm_of(tried.front().candidate);
  for (const Tried& one : tried) {
    line["candidates"].push_back({{"algorithm", algorithm_of(one.candidate)},
                                  {"predicted_us", one.candidate.total_us()},
                                  {"time_us", one.time_us.median},
                                  {"time_min_us", one.time_us.min},
                                  {"time_max_us", one.time_us.max},
                                  {"correct", one.correct}});
  }
  return line.dump() + "\n";
}

// The output is a link model in TOML: whatever else it says is a comment there.
constexpr std::string_view kRow =
    "# {:<14} {:>10}  {:<2}{:<37} {:>12} {:>12} {:>9} {:>9} {:>10} {:>10} {:>10}\n";

std::string rows_of(const Case& what, const std::vector<Tried>& tried) {
  std::string rows;
  const auto number = [](double value) { return fmt::format("{:.2f}", value); };
  for (const Tried& one : tried) {
    const comm::Candidate& candidate = one.candidate;
    rows += fmt::format(kRow, name_of(what.op), format_size(what.bytes), &one == &tried.front() ? "*" : "",
                        algorithm_of(candidate), number(candidate.total_us()), number(one.time_us.median),
                        number(candidate.latency_us), number(candidate.messages_us),
                        number(candidate.memory_us), number(candidate.network_us), number(candidate.add_us));
  }
  return rows;
}

}  // namespace

void run_tune(const BenchOptions& options, const StartCrew& start, std::ostream& out) {
  const comm::LinkModel model = measure_model(options, start);
  print(out, text_of(model, options.json));
  const std::unique_ptr<Crew> crew = start(options.site);
  if (!options.json) {
    print(out,
          "\n# Save this and name the file in LOCKSTEP_LINK_MODEL on all ranks to choose by these figures.\n"
          "# The three algorithms that they promise to be fastest; * is what the selector takes. Times in "
          "us.\n" +
              fmt::format(kRow, "op", "bytes", "", "algorithm", "predicted", "measured", "latency",
                          "messages", "memory", "network", "adding"));
  }
  std::set<std::string> wrong;
  for (const Op op : options.ops) {
    for (const std::size_t bytes : sizes_for(options, op)) {
      Case what;
      what.op = op;
      what.bytes = bytes;
      what.dtype = options.dtype;
      what.exactness = options.exactness;
      what.registered = options.registered.front();
      const std::vector<Tried> tried = try_best(what, *crew, options, model);
      print(out, options.json ? json_of(what, options.site.ranks, tried) : rows_of(what, tried));
      for (const Tried& one : tried) {
        if (!one.correct) wrong.insert(fmt::format("{} by {}", name_of(op), algorithm_of(one.candidate)));
      }
    }
  }
  if (!wrong.empty()) {
    throw InternalError(
        fmt::format("a collective gave a wrong result: {}; please report this", fmt::join(wrong, ", ")));
  }
}

}  // namespace lockstep::cli
