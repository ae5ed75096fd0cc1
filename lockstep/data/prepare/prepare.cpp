// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/prepare.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"
#include "lockstep/base/is_file.h"
#include "lockstep/base/output_file.h"
#include "lockstep/data/prepare/document_text.h"
#include "lockstep/data/prepare/ordered_parallel.h"
#include "lockstep/data/prepare/saved_progress.h"
#include "lockstep/data/tokenizer/bpe_trainer.h"
#include "lockstep/data/tokenizer/file_content.h"

namespace lockstep::data {
namespace {

// The tokens of a chunk, and how they are cut into sequences.
struct EncodedChunk {
  struct Sequence {
    std::size_t tokens;
    bool ends_document;
    bool validation;
  };
  std::vector<Token> tokens;
  std::vector<Sequence> sequences;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
};

struct PieceText {
  std::string text;
  bool validation;
};

PieceText piece_text(Piece piece, const PrepareOptions& options) {
  const bool is_json = piece.input->format == InputFormat::jsonl, validation = piece.validation;
  std::string text = text_of(std::move(piece), options.json_key);
  const bool chosen = is_json ? chosen_for_validation(text, options.reader.validation) : validation;
  return {std::move(text), chosen};
}

EncodedChunk encode(Chunk chunk, Encoder& encoder, const PrepareOptions& options) {
  EncodedChunk encoded;
  encoded.bytes = chunk.bytes;
  encoded.digest = chunk.digest;
  for (Piece& piece : chunk.pieces) {
    const bool begins = piece.begins_document, ends = piece.ends_document;
    const std::size_t before = encoded.tokens.size();
    const auto [text, validation] = piece_text(std::move(piece), options);
    if (text.empty()) continue;
    begins ? encoder.encode(text, encoded.tokens) : encoder.encode_more(text, encoded.tokens);
    if (ends && options.end_of_document) encoded.tokens.push_back(*options.end_of_document);
    encoded.sequences.push_back({encoded.tokens.size() - before, ends, validation});
  }
  return encoded;
}

std::uint64_t settings_hash(const PrepareOptions& options, const Tokenizer& tokenizer) {
  std::string formats;
  for (const Input& input : options.inputs) formats += input.format == InputFormat::jsonl ? 'j' : 't';
  const std::string settings = fmt::format(
      "{} {} {} {} {} {}", options.reader.document_lines, options.reader.validation, formats,
      options.json_key, options.end_of_document ? fmt::format("{}", *options.end_of_document) : "none",
      tokenizer.serialized());
  return XXH3_64bits(settings.data(), settings.size());
}

// Empty when no file gets the tokenizer.
std::string validation_tokenizer_of(const PrepareOptions& options) {
  if (options.tokenizer_file.empty()) return {};
  return validation_prefix_of(options) + options.tokenizer_file.substr(options.output.size());
}

// That of each corpus which is written.
std::vector<std::string> tokenizer_files_of(const PrepareOptions& options) {
  if (options.tokenizer_file.empty()) return {};
  std::vector<std::string> files = {options.tokenizer_file};
  if (options.reader.validation > 0) files.push_back(validation_tokenizer_of(options));
  return files;
}

class CorpusBuilder {
 public:
  CorpusBuilder(const PrepareOptions& options, const Tokenizer& tokenizer, const ProgressCallback& callback)
      : options_(options),
        tokenizer_(tokenizer),
        callback_(callback),
        lock_(options.output + ".lock"),
        progress_path_(options.output + ".progress"),
        reader_(new_reader()) {
    done_.settings = settings_hash(options, tokenizer);
  }

  PrepareProgress build() {
    resume();
    open_writers();
    try {
      write_all();
    } catch (...) {
      if (!is_saved_) discard();
      throw;
    }
    std::filesystem::remove(progress_path_);
    return progress();
  }

 private:
  void write_all() {
    try {
      add_all();
    } catch (...) {
      if (is_stopped_ && is_whole_ && unsaved_bytes_ > 0) keep();
      throw;
    }
    if (progress().train.documents == 0) {
      throw UsageError(
          fmt::format("{}: there is no document to write: the inputs hold no text, or --validation "
                      "takes all of it",
                      options_.output));
    }
    save(now());
    replace_old();
  }

  void add_all() {
    ordered_parallel(
        options_.threads, [&] { return reader_->next(); },
        [&] {
          return [this, encoder = tokenizer_.encoder()](Chunk chunk) {
            return encode(std::move(chunk), *encoder, options_);
          };
        },
        [&](const EncodedChunk& chunk) {
          // Before it is added: those until now are whole, as nobody knows of the last one.
          if (done_.chunks > 0) ask([&] { callback_(progress()); });
          add(chunk);
        });
    has_read_all_ = true;
    ask([&] { callback_(progress()); });
  }

  // Whether somebody wants this to end: they raise something.
  template <typename Callback>
  void ask(Callback&& callback) {
    try {
      callback();
    } catch (...) {
      is_stopped_ = true;
      throw;
    }
  }

  // The text may have ended because whoever has stopped this has ended its writer, too.
  void keep() {
    const SavedProgress whole = has_read_all_ ? before_last_ : now();
    if (whole.chunks > 0) save(whole);
  }

  // What can fail for want of room comes before the old corpus goes; behind it there are only renames.
  void replace_old() {
    std::map<std::string, OutputFile> tokenizers;  // by the names that they will have
    for (const std::string& file : tokenizer_files_of(options_)) {
      OutputFile& tokenizer = tokenizers.try_emplace(file, file + ".new").first->second;
      tokenizer.write(tokenizer_.serialized());
      tokenizer.sync();
    }
    if (validation_) validation_->complete();
    train_->complete();
    remove_old();
    for (auto& [file, tokenizer] : tokenizers) tokenizer.rename_to(file);
    if (validation_) validation_->publish();
    train_->publish();
  }

  // Whatever moment this is interrupted at, nobody finds files of two corpora together: without the index of
  // the old one there is no corpus. Its tokens would be read without it under the name PREFIX.bin.
  // A PREFIX_validation that is not replaced stays: nothing tells whether an earlier run has made it.
  void remove_old() const {
    std::vector<std::string> prefixes = {options_.output};
    if (validation_) prefixes.push_back(validation_prefix());
    const std::vector<std::string> tokenizers = tokenizer_files_of(options_);
    std::vector<std::string> stale;
    for (const std::string& prefix : prefixes) {
      stale.insert(stale.end(), {prefix + ".idx", prefix + ".bin"});
      if (!tokenizers.empty()) stale.insert(stale.end(), {prefix + kJsonTokenizer, prefix + kPieceTokenizer});
    }
    // The new ones take the places of old ones in one step.
    std::erase_if(stale, [&](const auto& file) { return std::ranges::count(tokenizers, file) > 0; });
    std::error_code was_not_there;
    for (const std::string& file : stale) std::filesystem::remove(file, was_not_there);
  }

  // There is nothing that another run could go on with.
  void discard() {
    train_->discard();
    if (validation_) validation_->discard();
  }

  std::string validation_prefix() const { return validation_prefix_of(options_); }

  // Reads again what an earlier run has done, to be sure that it was the same text; not when its files are
  // gone, for standard input can be read only once.
  void resume() {
    const auto saved = load_progress(progress_path_);
    if (!saved || saved->settings != done_.settings || !has_partial_files(*saved)) return;
    std::uint64_t digest = 0;
    std::uint64_t chunks = 0;
    while (chunks < saved->chunks) {
      const auto chunk = reader_->next();
      if (!chunk) break;
      digest = chunk->digest;
      ++chunks;
    }
    if (chunks == saved->chunks && digest == saved->digest) {
      done_ = *saved;
      resumed_bytes_ = saved->bytes;
      is_saved_ = true;
      return;
    }
    for (const Input& input : options_.inputs) {
      if (input.path == "-") {
        throw UsageError(
            fmt::format("standard input is not that of the interrupted run: give the same again, or remove "
                        "{} to begin anew",
                        progress_path_));
      }
    }
    reader_ = new_reader();
  }

  std::unique_ptr<DocumentReader> new_reader() {
    ReaderOptions reader = options_.reader;
    if (reader.while_reading) reader.while_reading = [this] { ask(options_.reader.while_reading); };
    return std::make_unique<DocumentReader>(options_.inputs, reader);
  }

  bool has_partial_files(const SavedProgress& saved) const {
    return MegatronWriter::can_go_on(options_.output, type(), saved.train) &&
           (options_.reader.validation <= 0 ||
            MegatronWriter::can_go_on(validation_prefix(), type(), saved.validation));
  }

  TokenType type() const { return type_for_vocabulary(tokenizer_.vocab_size()); }

  void open_writers() {
    train_.emplace(options_.output, type(), done_.train);
    if (options_.reader.validation > 0) validation_.emplace(validation_prefix(), type(), done_.validation);
    if (done_.chunks == 0) std::filesystem::remove(progress_path_);
  }

  void add(const EncodedChunk& chunk) {
    is_whole_ = false;
    // Without the last one, which may end as keep() says.
    if (unsaved_bytes_ >= options_.bytes_between_saves) save(now());
    before_last_ = now();
    std::span<const Token> left = chunk.tokens;
    for (const auto& sequence : chunk.sequences) {
      (sequence.validation ? *validation_ : *train_).add(left.first(sequence.tokens), sequence.ends_document);
      left = left.subspan(sequence.tokens);
    }
    done_.chunks += 1;
    done_.digest = chunk.digest;
    done_.bytes += chunk.bytes;
    unsaved_bytes_ += chunk.bytes;
    is_whole_ = true;
  }

  // With what was written until now.
  SavedProgress now() const {
    SavedProgress progress = done_;
    progress.train = train_->mark();
    if (validation_) progress.validation = validation_->mark();
    return progress;
  }

  void save(const SavedProgress& progress) {
    train_->save();
    if (validation_) validation_->save();
    save_progress(progress_path_, progress);
    is_saved_ = true;
    unsaved_bytes_ = 0;
  }

  PrepareProgress progress() const {
    return {done_.bytes, train_->mark(), validation_ ? validation_->mark() : MegatronWriter::Mark{},
            resumed_bytes_};
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const ProgressCallback& callback_;
  FileLock lock_;
  std::string progress_path_;
  bool is_saved_ = false;  // some of it, to go on with
  std::unique_ptr<DocumentReader> reader_;
  SavedProgress done_;         // its marks are those that the run began with
  SavedProgress before_last_;  // before the last chunk was added
  bool has_read_all_ = false;
  bool is_whole_ = true;  // no chunk is written in part
  std::atomic<bool> is_stopped_ = false;
  std::uint64_t resumed_bytes_ = 0;
  std::uint64_t unsaved_bytes_ = 0;
  std::optional<MegatronWriter> train_, validation_;
};

}  // namespace

std::string validation_prefix_of(const PrepareOptions& options) {
  return options.output + "_validation";
}

bool has_validation_of_before(const PrepareOptions& options) {
  const std::string tokens = validation_prefix_of(options) + ".bin";
  if (options.reader.validation > 0 || !std::filesystem::exists(tokens)) return false;
  const std::string tokenizer = validation_tokenizer_of(options);
  return !is_file(tokenizer) || !has_content(tokenizer, tokenizer_content(options.tokenizer_file));
}

PrepareProgress prepare_corpus(const PrepareOptions& options, const Tokenizer& tokenizer,
                               const ProgressCallback& progress) {
  return CorpusBuilder(options, tokenizer, progress).build();
}

BpeModel train_tokenizer(const PrepareOptions& options, const TrainTokenizerOptions& training,
                         const ProgressCallback& progress) {
  for (const Input& input : options.inputs) {
    if (input.path == "-")
      throw UsageError("a tokenizer cannot be trained on standard input: put the text into a file");
  }
  const SplitterChain splitter({training.pattern});
  DocumentReader reader(options.inputs, options.reader);
  WordCounts total;
  PrepareProgress done;
  std::uint64_t produced = 0;
  ordered_parallel(
      options.threads,
      [&] {
        auto chunk = produced < training.max_bytes ? reader.next() : std::nullopt;
        if (chunk) produced += chunk->bytes;
        return chunk;
      },
      [&] {
        return [&](Chunk chunk) {
          WordCounts counts;
          for (Piece& piece : chunk.pieces) {
            const auto [text, validation] = piece_text(std::move(piece), options);
            if (!validation) count_words(splitter, text, counts);
          }
          return std::pair(std::move(counts), chunk.bytes);
        };
      },
      [&](const std::pair<WordCounts, std::uint64_t>& counted) {
        for (const auto& [word, count] : counted.first) total[word] += count;
        done.bytes += counted.second;
        progress(done);
      });
  return train_bpe(total, training.vocab_size, training.pattern);
}

}  // namespace lockstep::data
