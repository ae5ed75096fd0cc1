// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench.h"
#include "lockstep/cli/bench/coordinator.h"
#include "lockstep/cli/bench/crews.h"
#include "lockstep/cli/bench/options.h"
#include "lockstep/cli/bench/report.h"
#include "lockstep/cli/bench/tune.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {
namespace {

using schedule::Op;

struct Crews {
  std::unique_ptr<Crew> ours;
  std::unique_ptr<Crew> mpi;  // null unless it is an opponent
  std::string transport;
};

Crews start_crews(const BenchOptions& options) {
  const auto meets = [&](const char* name) {
    return std::find(options.against.begin(), options.against.end(), name) != options.against.end();
  };
  Crews crews;
  if (meets("mpi")) crews.mpi = start_mpi_crew(options.ranks);
  crews.transport = resolved_transport(options.transport);
  crews.ours = start_crew(options.ranks, crews.transport);
  return crews;
}

// The name of the algorithm that the communicator will take.
std::string reported_algorithm(const Case& what, int ranks, const std::string& transport) {
  if (what.algorithm != "auto") return what.algorithm;
  const bool exact = what.exactness != Exactness::inexact;
  const auto choices =
      comm::candidates(spec_of(what, ranks), what.dtype, topology_of(ranks, transport), {}, exact);
  return std::string(name_of(choices.front().spec.algorithm));
}

Contestant opponent(const std::string& system, Case what, const Crews& crews) {
  what.system = system;
  what.algorithm = "auto";
  what.registered = system == "memcpy";
  if (system == "gloo")
    return {.crew = crews.ours.get(), .what = what, .algorithm = "ring", .transport = "tcp"};
  if (system == "mpi")
    return {.crew = crews.mpi.get(), .what = what, .algorithm = "auto", .transport = "mpi"};
  if (system == "sockets") {
    return {.crew = crews.ours.get(), .what = what, .algorithm = "stream", .transport = "tcp"};
  }
  return {.crew = crews.ours.get(), .what = what, .algorithm = "copy", .transport = "memory"};
}

std::vector<Contestant> contestants_for(const BenchOptions& options, const Crews& crews, Op op,
                                        std::size_t bytes) {
  Case what;
  what.op = op;
  what.dtype = options.dtype;
  what.bytes = bytes;
  what.exactness = options.exactness;
  std::vector<Contestant> contestants;
  for (const std::string& algorithm : algorithms_for(options, op)) {
    for (const bool registered : options.registered) {
      what.algorithm = algorithm;
      what.registered = registered;
      contestants.push_back({.crew = crews.ours.get(),
                             .what = what,
                             .algorithm = reported_algorithm(what, options.ranks, crews.transport),
                             .transport = crews.transport});
    }
  }
  for (const std::string& system : options.against) contestants.push_back(opponent(system, what, crews));
  return contestants;
}

bool ours_are_correct(const std::vector<Measurement>& measurements) {
  return std::all_of(measurements.begin(), measurements.end(), [](const Measurement& measurement) {
    return measurement.correct || measurement.contestant.what.system != "lockstep";
  });
}

int run_collectives(const BenchOptions& options, std::ostream& out) {
  const Crews crews = start_crews(options);
  if (!options.json) print_table_head(out);
  bool correct = true;
  for (const Op op : options.ops) {
    for (const std::size_t bytes : sizes_for(options, op)) {
      const auto measurements = measure(contestants_for(options, crews, op, bytes),
                                        {.turns = options.turns, .turn_us = options.turn_ms * 1e3});
      correct = correct && ours_are_correct(measurements);
      if (!options.json) print_table_rows(measurements, out);
      for (const Measurement& measurement : measurements) {
        if (options.json) out << json_line(measurement) << std::endl;
      }
    }
  }
  if (!correct)
    throw InternalError("a collective gave a wrong result: see 'correct' above; please report this");
  return 0;
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, std::ostream& out) {
  if (arguments.size() == 2 && arguments.front() == "agent") {
    run_process_agent(comm::parse_carrier(arguments.back()));
    return 0;
  }
  if (arguments.empty() || arguments.front() != "collectives") {
    throw UsageError("lockstep bench: name what to measure: lockstep bench collectives");
  }
  std::string help;
  const auto options = parse_bench_options({arguments.begin() + 1, arguments.end()}, help);
  if (!options) {
    out << help;
    return 0;
  }
  if (options->tune) {
    run_tune(*options, out);
    return 0;
  }
  return run_collectives(*options, out);
}

}  // namespace lockstep::cli
