// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/options.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/sizes.h"

namespace lockstep::cli {
namespace {

using schedule::Algorithm;
using schedule::Op;

constexpr std::array kAllOps = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                                Op::reduce,     Op::all_to_all,     Op::barrier};
constexpr std::array kAllAlgorithms = {
    Algorithm::ring,     Algorithm::tree, Algorithm::halving_doubling, Algorithm::direct,
    Algorithm::one_shot, Algorithm::mesh, Algorithm::hierarchical};
constexpr std::array<std::string_view, 4> kTransports = {"auto", "shm", "tcp", "loopback"};
constexpr std::array<std::string_view, 4> kOpponents = {"gloo", "mpi", "memcpy", "sockets"};
constexpr int kLeastTurns = 5;
constexpr int kMostTurns = 1000;
constexpr double kMostTurnMs = 10'000;

constexpr std::string_view kNotes =
    "bytes is the size of one rank's buffer. time is the median over turns of the slowest rank; algbw is "
    "bytes "
    "/ time, busbw is algbw times the factor of nccl-tests (all_reduce 2(n-1)/n, reduce_scatter, all_gather "
    "and all_to_all (n-1)/n), both in 1e9 bytes per second.\n"
    "Opponents are measured in turns with lockstep, in the same run: gloo and mpi in all_reduce; memcpy, the "
    "memory limit: every rank copies, all at once, half of the bytes that an algorithm must at least read "
    "and "
    "write per rank (for all_reduce a copy of `bytes` on each rank), between registered buffers and the "
    "quickest way; sockets, the limit of tcp on this host: "
    "every "
    "rank streams bytes x (busbw / algbw) to the next one.";

// The options as they are typed.
struct Texts {
  std::string op = "all_reduce";
  std::string algorithm = "auto";
  std::string transport = "auto";
  std::string bytes = "4K,64K,1M,16M,64M";
  std::string dtype = "fp32";
  std::string exact = "auto";
  std::string against;
  bool registered = false;
  bool unregistered = false;
};

template <std::size_t N>
void expect_one_of(const std::array<std::string_view, N>& known, std::string_view value,
                   std::string_view option) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw UsageError(fmt::format("{}: there is no '{}'; choose from {}", option, value.substr(0, 64),
                               fmt::join(known, ", ")));
}

std::vector<Op> parse_ops(const std::string& text) {
  if (text == "all") return {kAllOps.begin(), kAllOps.end()};
  std::vector<Op> ops;
  for (const std::string& name : split_list(text, "--op")) ops.push_back(schedule::parse_op(name));
  return ops;
}

std::vector<std::string> parse_algorithms(const std::string& text) {
  if (text == "all") return {};
  std::vector<std::string> names = split_list(text, "--algorithm");
  for (const std::string& name : names) {
    if (name != "auto" && name != "lanes") schedule::parse_algorithm(name);
  }
  return names;
}

Exactness parse_exactness(const std::string& text) {
  expect_one_of(std::array<std::string_view, 3>{"auto", "true", "false"}, text, "--exact");
  if (text == "auto") return Exactness::automatic;
  return text == "true" ? Exactness::exact : Exactness::inexact;
}

bool can_do(const std::string& algorithm, Op op) {
  if (algorithm == "auto") return true;
  if (algorithm == "lanes") return op == Op::all_reduce || op == Op::reduce_scatter;
  return schedule::supports(schedule::parse_algorithm(algorithm), op);
}

void check_sizes(const BenchOptions& options) {
  for (const Op op : options.ops) {
    const std::size_t unit =
        size_of(options.dtype) * (op == Op::all_to_all ? static_cast<std::size_t>(options.ranks) : 1);
    for (const std::size_t bytes : options.bytes) {
      if (op == Op::barrier || bytes % unit == 0) continue;
      throw UsageError(fmt::format("--bytes: {} is not a multiple of {}, which {} of {} on {} ranks needs",
                                   bytes, unit, name_of(op), name_of(options.dtype), options.ranks));
    }
  }
}

void check_ranges(const BenchOptions& options) {
  if (options.ranks < 1 || options.ranks > kMaxBenchRanks) {
    throw UsageError(fmt::format("--ranks: {} is not a number from 1 to {}", options.ranks, kMaxBenchRanks));
  }
  if (options.turns < kLeastTurns || options.turns > kMostTurns) {
    throw UsageError(
        fmt::format("--turns: {} is not a number from {} to {}; fewer turns say nothing about the spread",
                    options.turns, kLeastTurns, kMostTurns));
  }
  if (!(options.turn_ms >= 1 && options.turn_ms <= kMostTurnMs)) {
    throw UsageError(fmt::format("--turn-ms: {} is not a number from 1 to {}", options.turn_ms, kMostTurnMs));
  }
  for (const Op op : options.ops) {
    for (const std::string& algorithm : options.algorithms) {
      if (!can_do(algorithm, op))
        throw UsageError(fmt::format("--algorithm: {} cannot do {}", algorithm, name_of(op)));
    }
  }
  check_sizes(options);
}

void interpret(const Texts& texts, BenchOptions& options) {
  options.ops = parse_ops(texts.op);
  options.algorithms = parse_algorithms(texts.algorithm);
  options.transport = texts.transport;
  expect_one_of(kTransports, options.transport, "--transport");
  options.bytes = parse_sizes(texts.bytes);
  options.dtype = parse_dtype(texts.dtype);
  options.exactness = parse_exactness(texts.exact);
  if (texts.registered || !texts.unregistered) options.registered.push_back(true);
  if (texts.unregistered) options.registered.push_back(false);
  if (!texts.against.empty()) options.against = split_list(texts.against, "--against");
  for (const std::string& opponent : options.against) expect_one_of(kOpponents, opponent, "--against");
  check_ranges(options);
}

void declare(CLI::App& app, Texts& texts, BenchOptions& options) {
  app.footer(std::string(kNotes));
  app.add_option("--ranks", options.ranks, "Ranks to start on this host")->capture_default_str();
  app.add_option("--op", texts.op, "Operations, separated by commas, or all")->capture_default_str();
  app.add_option("--algorithm", texts.algorithm, "auto, all, lanes, or names separated by commas")
      ->capture_default_str();
  app.add_option("--transport", texts.transport, "auto, shm, tcp, or loopback (ranks as threads)")
      ->capture_default_str();
  app.add_option("--bytes", texts.bytes, "Sizes: 4K,1M,64M and ranges first:last:factor")
      ->capture_default_str();
  app.add_option("--dtype", texts.dtype, "fp32, bf16, fp16, fp64, int32, int64, uint8")
      ->capture_default_str();
  app.add_option("--exact", texts.exact, "Order of addition: true (canonical), false (any) or auto")
      ->capture_default_str();
  app.add_flag("--registered", texts.registered, "Buffers that peers use in place (the default)");
  app.add_flag("--unregistered", texts.unregistered, "Buffers from ordinary memory; with --registered: both");
  app.add_option("--turns", options.turns, "Turns of each system")->capture_default_str();
  app.add_option("--turn-ms", options.turn_ms, "How long a turn takes, in milliseconds")
      ->capture_default_str();
  app.add_option("--against", texts.against, "Opponents: gloo,mpi,memcpy,sockets");
  app.add_flag("--tune", options.tune, "Measure links and adding; print the choices of the selector and why");
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
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("lockstep bench collectives: {}", error.what()));
  }
  interpret(texts, options);
  return options;
}

std::vector<std::string> algorithms_for(const BenchOptions& options, Op op) {
  if (!options.algorithms.empty()) return options.algorithms;
  std::vector<std::string> names;
  for (const Algorithm algorithm : kAllAlgorithms) {
    const bool wanted = options.exactness != Exactness::exact || schedule::is_exact(algorithm);
    if (wanted && schedule::supports(algorithm, op)) names.emplace_back(name_of(algorithm));
  }
  return names;
}

std::vector<std::size_t> sizes_for(const BenchOptions& options, Op op) {
  return op == Op::barrier ? std::vector<std::size_t>{0} : options.bytes;
}

}  // namespace lockstep::cli
