// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/prepare.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/seconds_since.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/interruption.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/printable.h"
#include "lockstep/data/sentencepiece/tokenizer.h"
#include "lockstep/data/tokenizer/bpe_tokenizer.h"
#include "lockstep/data/tokenizer/splitter.h"

namespace lockstep::cli {
namespace {

struct PrepareFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer;
  bool train_tokenizer = false;
  std::uint64_t vocab_size = 0;
  std::optional<std::string> pattern;
  std::optional<std::uint64_t> train_mib;
  bool append_eod = false;
  std::string eod;
  double validation = 0;
  std::uint64_t document_lines = 0;
  std::string format = "auto";
  std::string json_key = "text";
  int threads = 0;
  bool json = false;
};

// One line on a terminal that is written over, and nothing elsewhere. Ends the work when a signal has come.
class ProgressLine {
 public:
  ProgressLine(std::string what, const Interruption& interruption)
      : what_(std::move(what)), interruption_(interruption), shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (shown_ && any_) std::fputs("\r\033[K", stderr);
  }

  void operator()(const data::PrepareProgress& progress) {
    interruption_.check();
    if (!shown_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(200);
    any_ = true;
    const double seconds = seconds_since(begin_);
    const double mb = static_cast<double>(progress.bytes) / 1e6;
    fmt::print(stderr, "\r\033[K{}: {:.1f} MB, {} documents, {} tokens, {:.1f} MB/s", what_, mb,
               progress.train.documents + progress.validation.documents,
               progress.train.tokens + progress.validation.tokens,
               static_cast<double>(progress.bytes - progress.resumed_bytes) / 1e6 / seconds);
    std::fflush(stderr);
  }

 private:
  std::string what_;
  const Interruption& interruption_;
  bool shown_;
  bool any_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;
};

bool is_sentencepiece(const PrepareFlags& flags) {
  return flags.tokenizer.ends_with(".model");
}

std::string pattern_of(const std::string& name) {
  if (name == "gpt2") return data::kGpt2Pattern;
  if (name == "llama3") return data::kLlama3Pattern;
  if (name == "qwen2") return data::kQwen2Pattern;
  throw UsageError(fmt::format("'{}' is no pattern of words: choose gpt2, llama3 or qwen2", name));
}

// Of a folder the files would stand beside it, where nobody finds them who names the corpus so.
void check_output(const std::string& output) {
  const std::filesystem::path prefix(output);
  std::error_code not_there;
  if (!prefix.filename().empty() && !std::filesystem::is_directory(prefix, not_there)) return;
  throw UsageError(fmt::format("--output is '{}', which is a folder: name a prefix for the files, such as {}",
                               output, (prefix / "corpus").string()));
}

void check(const PrepareFlags& flags) {
  if (flags.train_tokenizer == !flags.tokenizer.empty()) {
    throw UsageError("give either --tokenizer (a file or 'bytes') or --train-tokenizer with --vocab-size");
  }
  if (flags.train_tokenizer != (flags.vocab_size > 0)) {
    throw UsageError("--train-tokenizer and --vocab-size belong together: give both or none");
  }
  if (!flags.train_tokenizer && (flags.pattern || flags.train_mib)) {
    throw UsageError(
        "--pattern and --train-mib are for a tokenizer that is trained here: leave them out, or give "
        "--train-tokenizer with --vocab-size instead of --tokenizer");
  }
  if (!flags.eod.empty() && !flags.append_eod) {
    throw UsageError(
        "--eod names the token that --append-eod puts behind documents: give both, or leave it out");
  }
  check_output(flags.output);
  if (flags.validation == 1) throw UsageError("--validation is 1: nothing would be left to train on");
}

data::PrepareOptions options_of(const PrepareFlags& flags) {
  data::PrepareOptions options;
  options.inputs = data::list_inputs(flags.inputs, flags.format);
  options.output = flags.output;
  options.reader = {flags.document_lines, flags.validation};
  options.json_key = flags.json_key;
  options.threads = flags.threads > 0 ? flags.threads : usable_cores();
  return options;
}

std::unique_ptr<data::Tokenizer> given_tokenizer(const PrepareFlags& flags) {
  return is_sentencepiece(flags) ? data::load_sentencepiece(flags.tokenizer)
                                 : data::load_tokenizer(flags.tokenizer);
}

std::unique_ptr<data::Tokenizer> trained_tokenizer(const PrepareFlags& flags,
                                                   const data::PrepareOptions& options,
                                                   const Interruption& interruption) {
  ProgressLine line("tokenizer", interruption);
  return std::make_unique<data::BpeTokenizer>(data::train_tokenizer(
      options,
      {flags.vocab_size, pattern_of(flags.pattern.value_or("llama3")), flags.train_mib.value_or(256) << 20},
      std::ref(line)));
}

std::optional<data::Token> end_of_document(const PrepareFlags& flags, const data::Tokenizer& tokenizer) {
  if (!flags.append_eod) return std::nullopt;
  const auto token = flags.eod.empty() ? tokenizer.end_of_document() : tokenizer.find(flags.eod);
  if (!token) {
    throw UsageError(flags.eod.empty()
                         ? "the tokenizer has no token for the end of a document: name one with --eod"
                         : fmt::format("the tokenizer has no token '{}', which --eod names", flags.eod));
  }
  return token;
}

std::string report(const PrepareFlags& flags, const data::Tokenizer& tokenizer,
                   const data::PrepareOptions& options, const data::PrepareProgress& done, double seconds) {
  const bool old_validation = data::has_validation_of_before(options);
  const double mb_per_s = static_cast<double>(done.bytes - done.resumed_bytes) / 1e6 / seconds;
  if (flags.json) {
    const nlohmann::ordered_json summary = {{"output", flags.output},
                                            {"tokenizer", options.tokenizer_file},
                                            {"vocab_size", tokenizer.vocab_size()},
                                            {"bytes", done.bytes},
                                            {"resumed_bytes", done.resumed_bytes},
                                            {"documents", done.train.documents},
                                            {"tokens", done.train.tokens},
                                            {"validation_documents", done.validation.documents},
                                            {"validation_tokens", done.validation.tokens},
                                            {"validation_of_before", old_validation},
                                            {"seconds", seconds},
                                            {"mb_per_s", mb_per_s}};
    return summary.dump() + "\n";
  }
  const std::string output = printable(flags.output);
  const std::string validation = printable(data::validation_prefix_of(options));
  std::string text = fmt::format("wrote {0}.bin and {0}.idx: {1}, {2} of a vocabulary of {3}\n", output,
                                 counted(done.train.documents, "document"),
                                 counted(done.train.tokens, "token"), tokenizer.vocab_size());
  if (flags.validation > 0) {
    text +=
        fmt::format("wrote {0}_validation.bin and .idx: {1}, {2}\n", output,
                    counted(done.validation.documents, "document"), counted(done.validation.tokens, "token"));
  }
  if (flags.train_tokenizer && tokenizer.vocab_size() < flags.vocab_size) {
    text += fmt::format(
        "the text that the tokenizer learnt from gives no more than these {} tokens of the {} that "
        "--vocab-size asks for\n",
        tokenizer.vocab_size(), flags.vocab_size);
  }
  if (flags.validation > 0 && done.validation.documents == 0) {
    text += fmt::format(
        "{} has no document and cannot be used: choose a larger --validation, or cut plain text into more "
        "documents with --document-lines\n",
        validation);
  }
  if (old_validation) {
    text += fmt::format(
        "{0}.bin of before is still there: its tokens may be of another tokenizer; give --validation to "
        "replace it, or remove {0}.*\n",
        validation);
  }
  if (done.resumed_bytes > 0) {
    text += fmt::format("{:.1f} MB had been done by an interrupted run\n",
                        static_cast<double>(done.resumed_bytes) / 1e6);
  }
  return text + fmt::format("wrote {}\nread {:.1f} MB of text in {:.1f} s, {:.1f} MB/s\n",
                            printable(options.tokenizer_file), static_cast<double>(done.bytes) / 1e6, seconds,
                            mb_per_s);
}

// Whoever writes there says why it cannot.
void make_folder_of(const std::string& output) {
  const auto folder = std::filesystem::path(output).parent_path();
  std::error_code failure;
  if (!folder.empty()) std::filesystem::create_directories(folder, failure);
}

int prepare(const PrepareFlags& flags) {
  check(flags);
  Interruption interruption("nothing was written; the same command begins anew");
  const Clock::time_point begin = Clock::now();
  data::PrepareOptions options = options_of(flags);
  options.reader.while_reading = [&] { interruption.check(); };
  const auto tokenizer =
      flags.train_tokenizer ? trained_tokenizer(flags, options, interruption) : given_tokenizer(flags);
  options.end_of_document = end_of_document(flags, *tokenizer);
  options.tokenizer_file =
      flags.output + (is_sentencepiece(flags) ? data::kPieceTokenizer : data::kJsonTokenizer);
  make_folder_of(flags.output);
  data::PrepareProgress done;
  {
    interruption.set_what_remains(
        fmt::format("{} is not complete; the same command goes on with what was saved", flags.output));
    ProgressLine line("prepare", interruption);
    done = data::prepare_corpus(options, *tokenizer, std::ref(line));
    interruption.set_what_remains(flags.output + " is complete");
  }
  const double seconds = seconds_since(begin);
  print(std::cout, report(flags, *tokenizer, options, done, seconds));
  return kDone;
}

}  // namespace

void add_prepare(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("prepare", "Turn text into a corpus of tokens to train on");
  command->footer(
      "INPUT is a file, a folder or - (standard input): plain text, or JSON lines with the text under a "
      "key;\n"
      "either may be gzip. The corpus is a pair .bin and .idx as Megatron-LM reads and writes it. An "
      "interrupted\n"
      "run goes on where it was when it is started again with the same arguments.");
  const auto flags = std::make_shared<PrepareFlags>();  // shared by the options and the action
  command->add_option("INPUT", flags->inputs, "Files, folders or -")->required();
  command->add_option("--output", flags->output, "PREFIX of the files to write")->required();
  command->add_option("--tokenizer", flags->tokenizer, "tokenizer.json, a sentencepiece .model, or 'bytes'");
  command->add_flag("--train-tokenizer", flags->train_tokenizer,
                    "Train a byte-pair tokenizer on the text first");
  command->add_option("--vocab-size", flags->vocab_size, "Tokens of the trained tokenizer")
      ->check(whole_number(1, data::kMaxVocabulary));
  command->add_option("--pattern", flags->pattern, "Its words: gpt2, llama3 (default) or qwen2");
  command
      ->add_option("--train-mib", flags->train_mib, "MiB of text that it is trained on at most (default 256)")
      ->check(whole_number(1, std::int64_t{1} << 32));
  command->add_flag("--append-eod", flags->append_eod,
                    "End each document with the tokenizer's token for that");
  command->add_option("--eod", flags->eod, "Name of that token, when it is not a usual one");
  command
      ->add_option("--validation", flags->validation,
                   "Share of documents for PREFIX_validation, such as 0.05")
      ->check(number(0, 1));
  command
      ->add_option("--document-lines", flags->document_lines,
                   "Lines of plain text that make a document (default: the file is one)")
      ->check(whole_number(1, std::int64_t{1} << 62));
  command->add_option("--format", flags->format, "text, jsonl or auto (default: by the name)");
  command->add_option("--json-key", flags->json_key, "Where JSON lines hold the text (default: text)");
  command->add_option("--threads", flags->threads, "Threads to use (default: all cores)")
      ->check(whole_number(1, 1024));
  command->add_flag("--json", flags->json, "Print the summary as JSON");
  command->callback([flags, &invocation] { invocation.action = [flags] { return prepare(*flags); }; });
}

}  // namespace lockstep::cli
