// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/options.h"

#include <algorithm>
#include <array>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench/check_options.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/comm/algorithm_name.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::cli {
namespace {

using schedule::Algorithm;
using schedule::Op;

constexpr std::array kAllOps = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                                Op::reduce,     Op::all_to_all,     Op::barrier};
constexpr std::array kAllAlgorithms = {
    Algorithm::ring,     Algorithm::tree, Algorithm::halving_doubling, Algorithm::direct,
    Algorithm::one_shot, Algorithm::mesh, Algorithm::hierarchical};
const std::vector<std::string> kTransports = {"auto", "shm", "tcp", "mpi", "loopback"};
const std::vector<std::string> kOpponents = {"gloo", "mpi", "memcpy", "sockets"};
const std::vector<std::string> kExactness = {"auto", "true", "false"};
constexpr int kLeastTurns = 5;
constexpr int kMostTurns = 1000;
constexpr double kMostTurnMs = 10'000;

constexpr std::string_view kNotes =
    "bytes is the size of one rank's buffer, as it was measured. time is the median over turns of the "
    "slowest rank; algbw is "
    "bytes / "
    "time, busbw is algbw times the factor of nccl-tests (all_reduce 2(n-1)/n, reduce_scatter, all_gather "
    "and "
    "all_to_all (n-1)/n; - on one rank, where no link is used), both in 1e9 bytes per second.\n"
    "Opponents are measured in turns with lockstep, in the same run: gloo and mpi in all_reduce; memcpy, the "
    "memory "
    "limit: every rank copies, all at once, half of the bytes that an algorithm must at least read and write "
    "per rank "
    "(for all_reduce a copy of `bytes` on each rank), between registered buffers and the quickest way; "
    "sockets, the "
    "limit of tcp on this host: every rank streams bytes x (busbw / algbw) to the next one.\n"
    "The last column says how many times as fast as gloo and mpi lockstep is, and what share of the speed of "
    "memcpy "
    "and sockets it reaches.";

// The options as they are typed.
struct Texts {
  std::string op = "all_reduce";
  std::string algorithm = "auto";
  std::string transport = "auto";
  std::string ranks_per_host;
  std::string lanes;
  std::string bytes = "4K,64K,1M,16M,64M";
  std::string dtype = "fp32";
  std::string exact = "auto";
  std::string against;
  bool registered = false;
  bool unregistered = false;
};

template <typename Values>
std::vector<std::string> names_of(const Values& values, std::vector<std::string> and_these = {}) {
  std::vector<std::string> names;
  names.reserve(values.size() + and_these.size());
  for (const auto value : values) names.emplace_back(name_of(value));
  names.insert(names.end(), and_these.begin(), and_these.end());
  return names;
}

std::string list(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Op> parse_ops(const std::string& text) {
  if (text == "all") return {kAllOps.begin(), kAllOps.end()};
  std::vector<Op> ops;
  for (const std::string& name : split_list(text, "--op")) {
    expect_one_of("--op", name, names_of(kAllOps, {"all"}));
    if (name == "all") throw UsageError("--op names all and others: write all alone");
    ops.push_back(schedule::parse_op(name));
  }
  return ops;
}

void check_algorithm_name(const std::string& name) {
  if (name.find('(') == std::string::npos)
    return expect_one_of("--algorithm", name, names_of(kAllAlgorithms, {"lanes", "auto", "all"}));
  try {
    comm::parse_algorithm_name(name);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--algorithm is {}: {}", rendezvous::quote(name), error.what()));
  }
}

std::vector<std::string> parse_algorithms(const std::string& text) {
  if (text == "all") return {};
  std::vector<std::string> names = split_list(text, "--algorithm");
  for (const std::string& name : names) {
    check_algorithm_name(name);
    if (name == "all") throw UsageError("--algorithm names all and others: write all alone");
  }
  return names;
}

Exactness parse_exactness(const std::string& text) {
  expect_one_of("--exact", text, kExactness);
  if (text == "auto") return Exactness::automatic;
  return text == "true" ? Exactness::exact : Exactness::inexact;
}

void interpret(const Texts& texts, BenchOptions& options) {
  options.ops = parse_ops(texts.op);
  options.algorithms = parse_algorithms(texts.algorithm);
  expect_one_of("--transport", texts.transport, kTransports);
  options.site.transport = texts.transport;
  if (!texts.ranks_per_host.empty()) {
    options.site.ranks_per_host = parse_counts(texts.ranks_per_host, "--ranks-per-host", 1, kMaxBenchRanks);
  }
  if (!texts.lanes.empty()) options.lanes = parse_counts(texts.lanes, "--lanes", 0, kMaxBenchLanes);
  options.bytes = parse_sizes(texts.bytes);
  expect_one_of("--dtype", texts.dtype, names_of(kAllDTypes));
  options.dtype = parse_dtype(texts.dtype);
  options.exactness = parse_exactness(texts.exact);
  if (texts.registered || !texts.unregistered) options.registered.push_back(true);
  if (texts.unregistered) options.registered.push_back(false);
  if (!texts.against.empty()) options.against = split_list(texts.against, "--against");
  for (const std::string& opponent : options.against) expect_one_of("--against", opponent, kOpponents);
  check_together(options);
}

void declare(CLI::App& app, Texts& texts, BenchOptions& options) {
  app.footer(std::string(kNotes));
  app.add_option("--ranks", options.site.ranks, "Ranks to start on this host")
      ->check(whole_number(1, kMaxBenchRanks))
      ->capture_default_str();
  app.add_option("--op", texts.op,
                 fmt::format("Operations, separated by commas: {}, or all", list(names_of(kAllOps))))
      ->capture_default_str();
  app.add_option(
         "--algorithm", texts.algorithm,
         fmt::format("Algorithms, separated by commas: {} (or with its parts inside and between hosts: "
                     "'hierarchical(ring,tree)'), lanes, auto (what the library would choose), or all",
                     list(names_of(kAllAlgorithms))))
      ->capture_default_str();
  app.add_option("--transport", texts.transport,
                 "shm, tcp, mpi (started by mpirun), loopback (ranks as threads), or auto: shm")
      ->capture_default_str();
  app.add_option(
      "--ranks-per-host", texts.ranks_per_host,
      "Hosts that the ranks take themselves to be on, as in 2,2: with --transport auto they use shm "
      "inside a host and tcp between hosts; hierarchical needs several hosts, and one with several "
      "ranks");
  app.add_option(
      "--lanes", texts.lanes,
      "Lanes that each rank owns, as in 1,3, each a buffer of `bytes`, a power of two together: the "
      "algorithm lanes sums them in the lane tree, with any other one every rank adds its own first");
  app.add_option(
         "--bytes", texts.bytes,
         "Sizes of a rank's buffer: 4K,1M,64M and ranges first:last:factor; rounded down to whole elements, "
         "for all_to_all to as many for each rank, but to no less than one; what comes to the same is "
         "measured once")
      ->capture_default_str();
  app.add_option("--dtype", texts.dtype, list(names_of(kAllDTypes)))->capture_default_str();
  app.add_option("--exact", texts.exact, "Order of addition: true (canonical), false (any) or auto")
      ->capture_default_str();
  app.add_flag("--registered", texts.registered, "Buffers that peers use in place (the default)");
  app.add_flag("--unregistered", texts.unregistered, "Buffers from ordinary memory; with --registered: both");
  app.add_option("--turns", options.turns,
                 "Turns of each system, at least 5: fewer say nothing about the spread")
      ->check(whole_number(kLeastTurns, kMostTurns))
      ->capture_default_str();
  app.add_option("--turn-ms", options.turn_ms, "How long a turn takes, in milliseconds")
      ->check(number(1, kMostTurnMs))
      ->capture_default_str();
  app.add_option("--against", texts.against,
                 fmt::format("Opponents, separated by commas: {}", list(kOpponents)));
  app.add_flag("--tune", options.tune,
               "Measure links, with --transport mpi those of MPI too, and adding; print them as a file for "
               "LOCKSTEP_LINK_MODEL, with what the selector chooses then and why as comments");
  app.add_flag("--json", options.json, "One JSON object per line");
}

}  // namespace

std::optional<BenchOptions> parse_bench_options(const std::vector<std::string>& arguments,
                                                std::string& help) {
  CLI::App app("Measures collectives on ranks of this host, and checks every result.",
               "lockstep bench collectives");
  Texts texts;
  BenchOptions options;
  declare(app, texts, options);
  check_arguments(app, app.get_name(), arguments);
  if (parse(app, arguments, help)) return std::nullopt;
  interpret(texts, options);
  return options;
}

std::vector<std::string> algorithms_for(const BenchOptions& options, Op op) {
  if (!options.algorithms.empty()) return options.algorithms;
  const comm::Topology topology = topology_of(options.site);
  std::vector<std::string> names;
  for (const Algorithm algorithm : kAllAlgorithms) {
    const bool wanted =
        options.exactness != Exactness::exact || comm::is_exact({.algorithm = algorithm}, topology);
    const bool has_hosts = algorithm != Algorithm::hierarchical || topology.has_two_levels();
    if (wanted && has_hosts && schedule::supports(algorithm, op)) names.emplace_back(name_of(algorithm));
  }
  return names;
}

std::vector<std::size_t> sizes_for(const BenchOptions& options, Op op) {
  if (op == Op::barrier) return {0};
  const auto shares = static_cast<std::size_t>(op == Op::all_to_all ? options.site.ranks : 1);
  const std::size_t unit = size_of(options.dtype) * shares;
  std::vector<std::size_t> sizes;
  for (const std::size_t bytes : options.bytes) {
    const std::size_t size = bytes == 0 ? 0 : std::max(unit, bytes / unit * unit);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace lockstep::cli
