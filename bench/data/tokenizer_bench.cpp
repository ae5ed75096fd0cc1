// SPDX-License-Identifier: Apache-2.0
//
// Bytes per second of one core: LOCKSTEP_BENCH_TEXT names a text file, LOCKSTEP_BENCH_TOKENIZER a tokenizer
// (without it, one of 4096 tokens is trained on the text).
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "lockstep/data/tokenizer/bpe_tokenizer.h"
#include "lockstep/data/tokenizer/bpe_trainer.h"
#include "lockstep/data/tokenizer/splitter.h"

namespace {

using namespace lockstep::data;

const std::string& text() {
  static const std::string content = [] {
    const char* path = std::getenv("LOCKSTEP_BENCH_TEXT");
    std::ifstream in(path == nullptr ? "/usr/share/common-licenses/GPL-3" : path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return content;
}

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> loaded = []() -> std::unique_ptr<Tokenizer> {
    if (const char* name = std::getenv("LOCKSTEP_BENCH_TOKENIZER")) return load_tokenizer(name);
    WordCounts counts;
    count_words(SplitterChain({kLlama3Pattern}), text(), counts);
    return std::make_unique<BpeTokenizer>(train_bpe(counts, 4096, kLlama3Pattern));
  }();
  return *loaded;
}

void processed(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(text().size()) * state.iterations());
}

void split(benchmark::State& state, const char* pattern) {
  const SplitterChain splitter({pattern});
  std::vector<std::size_t> ends;
  while (state.KeepRunning()) splitter.split(text(), ends);
  state.counters["words"] = static_cast<double>(ends.size());
  processed(state);
}
BENCHMARK_CAPTURE(split, gpt2, kGpt2Pattern);
BENCHMARK_CAPTURE(split, llama3, kLlama3Pattern);

void encode(benchmark::State& state) {
  const auto encoder = tokenizer().encoder();
  std::vector<Token> tokens;
  while (state.KeepRunning()) {
    tokens.clear();
    encoder->encode(text(), tokens);
  }
  state.counters["tokens"] = static_cast<double>(tokens.size());
  processed(state);
}
BENCHMARK(encode);

void encode_with_a_cold_cache(benchmark::State& state) {
  std::vector<Token> tokens;
  while (state.KeepRunning()) {
    tokens.clear();
    tokenizer().encoder()->encode(text(), tokens);
  }
  processed(state);
}
BENCHMARK(encode_with_a_cold_cache);

void train(benchmark::State& state) {
  while (state.KeepRunning()) {
    WordCounts counts;
    count_words(SplitterChain({kLlama3Pattern}), text(), counts);
    benchmark::DoNotOptimize(train_bpe(counts, 4096, kLlama3Pattern));
  }
  processed(state);
}
BENCHMARK(train)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
