// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_memory.h"
#include "lockstep/base/log.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench.h"
#include "lockstep/cli/bench/coordinator.h"
#include "lockstep/cli/bench/crews.h"
#include "lockstep/cli/bench/footprint.h"
#include "lockstep/cli/bench/options.h"
#include "lockstep/cli/bench/report.h"
#include "lockstep/cli/bench/state.h"
#include "lockstep/cli/bench/train.h"
#include "lockstep/cli/bench/tune.h"
#include "lockstep/cli/output.h"
#include "lockstep/comm/connect.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {
namespace {

using schedule::Op;

struct Crews {
  std::unique_ptr<Crew> ours;
  std::unique_ptr<Crew> mpi;  // null unless it is an opponent
  comm::LinkModel links;      // as the ranks take it
};

Crews start_crews(const BenchOptions& options, rendezvous::SignalInbox& signals) {
  const auto meets = [&](const char* name) {
    return std::find(options.against.begin(), options.against.end(), name) != options.against.end();
  };
  Crews crews;
  crews.links = links_of(options.site, comm::links_from_environment());
  if (meets("mpi")) crews.mpi = start_mpi_opponent(options.site.ranks, signals);
  crews.ours = start_crew(options.site, signals);
  return crews;
}

// The name of the algorithm that the communicator will take.
std::string taken_algorithm(const Case& what, const Site& site, const comm::LinkModel& links) {
  if (what.algorithm != "auto") return what.algorithm;
  const bool exact = what.exactness != Exactness::inexact;
  return algorithm_of(
      comm::candidates(spec_of(what, site.ranks), what.dtype, topology_of(site), links, exact).front());
}

// "lanes(1,3)" for the tree over the lanes that ranks own, "add+ring" where each adds its own before.
std::string reported_algorithm(const Case& what, const std::string& taken) {
  if (what.lanes.empty()) return taken;
  return taken == "lanes" ? fmt::format("lanes({})", fmt::join(what.lanes, ",")) : "add+" + taken;
}

Contestant contestant_for(const Case& what, const BenchOptions& options, const Crews& crews) {
  if (what.system == "gloo")
    return {.crew = crews.ours.get(), .what = what, .algorithm = "ring", .transport = "tcp"};
  if (what.system == "mpi")
    return {.crew = crews.mpi.get(), .what = what, .algorithm = "auto", .transport = "mpi"};
  if (what.system == "sockets")
    return {.crew = crews.ours.get(), .what = what, .algorithm = "stream", .transport = "tcp"};
  if (what.system == "memcpy")
    return {.crew = crews.ours.get(), .what = what, .algorithm = "copy", .transport = "memory"};
  return {.crew = crews.ours.get(),
          .what = what,
          .algorithm = reported_algorithm(what, taken_algorithm(what, options.site, crews.links)),
          .transport = transport_of(options.site)};
}

// What is measured together: all that is asked for of one operation and size.
std::vector<Case> cases_for(const BenchOptions& options, Op op, std::size_t bytes) {
  Case what;
  what.op = op;
  what.dtype = options.dtype;
  what.bytes = bytes;
  what.exactness = options.exactness;
  what.lanes = options.lanes;
  std::vector<Case> cases;
  for (const std::string& algorithm : algorithms_for(options, op)) {
    for (const bool registered : options.registered) {
      what.algorithm = algorithm;
      what.registered = registered;
      cases.push_back(what);
    }
  }
  for (const std::string& system : options.against) {
    what.system = system;
    what.algorithm = "auto";
    what.registered = system == "memcpy";
    cases.push_back(what);
  }
  return cases;
}

// Before anything is started: a machine without memory ends processes that have nothing to do with us.
void check_memory(const BenchOptions& options) {
  const std::uint64_t usable = read_host_memory().usable();
  for (const Op op : options.ops) {
    for (const std::size_t bytes : sizes_for(options, op))
      require_memory(cases_for(options, op, bytes), options.site.ranks, usable);
  }
}

void warn_of_few_cores(int ranks) {
  const int cores = usable_cores();
  if (ranks <= 2 * cores) return;
  log::warning(
      fmt::format("{} ranks share {} cores: they mostly wait for each other's turn, and the times say little "
                  "about ranks with a core each",
                  ranks, cores));
}

bool ours_are_correct(const std::vector<Measurement>& measurements) {
  return std::all_of(measurements.begin(), measurements.end(), [](const Measurement& measurement) {
    return measurement.correct || measurement.contestant.what.system != "lockstep";
  });
}

std::string report_of(const std::vector<Measurement>& measurements, bool json) {
  if (!json) return table_rows(measurements);
  std::string lines;
  for (const Measurement& measurement : measurements) lines += json_line(measurement) + "\n";
  return lines;
}

void run_collectives(const BenchOptions& options, rendezvous::SignalInbox& signals, std::ostream& out) {
  const Crews crews = start_crews(options, signals);
  std::string head = options.json ? "" : table_head();
  bool correct = true;
  for (const Op op : options.ops) {
    for (const std::size_t bytes : sizes_for(options, op)) {
      std::vector<Contestant> contestants;
      for (const Case& what : cases_for(options, op, bytes))
        contestants.push_back(contestant_for(what, options, crews));
      const auto measurements =
          measure(contestants, {.turns = options.turns, .turn_us = options.turn_ms * 1e3});
      correct = correct && ours_are_correct(measurements);
      // The head waits for the first rows, so that a refusal of the ranks stands alone.
      print(out, std::exchange(head, "") + report_of(measurements, options.json));
    }
  }
  if (!correct)
    throw InternalError("a collective gave a wrong result: see 'correct' above; please report this");
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, std::ostream& out) {
  if (arguments.size() == 2 && arguments.front() == "agent") {
    run_process_agent(comm::parse_carrier(arguments.back()));
    return 0;
  }
  if (arguments.empty())
    throw UsageError("name what to measure: lockstep bench collectives, train, memory or kernels");
  if (arguments.front() == "train") return run_train_bench({arguments.begin() + 1, arguments.end()}, out);
  if (arguments.front() == "memory") return run_memory_bench({arguments.begin() + 1, arguments.end()}, out);
  const std::vector<std::string> known = {"collectives", "train", "memory", "kernels"};
  if (arguments.front() != known.front())
    refuse_unknown("benchmark", arguments.front(), known, "lockstep bench");
  std::string help;
  const auto options = parse_bench_options({arguments.begin() + 1, arguments.end()}, help);
  if (!options) {
    print(out, help);
    return 0;
  }
  check_memory(*options);
  warn_of_few_cores(options->site.ranks);
  rendezvous::SignalInbox signals({SIGINT, SIGTERM, SIGHUP});
  if (options->tune) {
    run_tune(
        *options, [&signals](const Site& site) { return start_crew(site, signals); }, out);
  } else {
    run_collectives(*options, signals, out);
  }
  return 0;
}

}  // namespace lockstep::cli
