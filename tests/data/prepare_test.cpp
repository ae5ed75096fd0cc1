// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/prepare.h"

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/corpus/megatron_index.h"
#include "lockstep/data/prepare/saved_progress.h"
#include "lockstep/data/tokenizer/bpe_tokenizer.h"
#include "lockstep/data/tokenizer/splitter.h"

#include "tests/data/metaspace_file.h"
#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::all_tokens;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

void ignore(const PrepareProgress&) {}

// Enough for several chunks.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < (5U << 20); ++i)
    text += "And line " + std::to_string(i) + " was without form,\nand void;\n";
  return text;
}

class Prepare : public ::testing::Test {
 protected:
  PrepareOptions options(std::vector<std::string> paths) const {
    PrepareOptions options;
    options.inputs = list_inputs(paths, "auto");
    options.output = folder_.path("out");
    options.bytes_between_saves = 1;
    return options;
  }
  std::string decoded(const std::string& prefix) const {
    return bytes_.decode(all_tokens(*open_corpus(folder_.path(prefix), {.vocab_size = 257})));
  }

  TemporaryFolder folder_;
  BpeTokenizer bytes_{byte_model()};
};

TEST_F(Prepare, WritesDocumentsInOrderWithTheirEnds) {
  folder_.write("in/b.jsonl", "{\"text\": \"two\"}\n{\"text\": \"\"}\n{\"text\": \"drei\"}\n");
  folder_.write("in/a.txt", "one");
  folder_.write("in/.hidden.txt", "hidden");
  folder_.write("in/picture.png", "\xFF");
  PrepareOptions how = options({folder_.path("in")});
  how.end_of_document = bytes_.end_of_document();
  const PrepareProgress done = prepare_corpus(how, bytes_, ignore);
  EXPECT_EQ(decoded("out"), "one<|endoftext|>two<|endoftext|>drei<|endoftext|>");
  EXPECT_EQ(done.train, (MegatronWriter::Mark{3, 3, 13}));
  EXPECT_EQ(MegatronIndex(folder_.path("out.idx")).document(2), (Range{8, 13}));
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("in", "out.bin", "out.idx"));
}

TEST_F(Prepare, TheNumberOfThreadsChangesNothing) {
  const std::string text = long_text();
  PrepareOptions how = options({folder_.write("a.txt", text)});
  prepare_corpus(how, bytes_, ignore);
  EXPECT_EQ(decoded("out"), text);
  const std::string tokens = folder_.read("out.bin"), index = folder_.read("out.idx");
  how.threads = 4;
  prepare_corpus(how, bytes_, ignore);
  EXPECT_EQ(folder_.read("out.bin"), tokens);
  EXPECT_EQ(folder_.read("out.idx"), index);
  EXPECT_EQ(MegatronIndex(folder_.path("out.idx")).documents(), 1U);
}

// Pieces of a document get no mark that the document does not have.
TEST_F(Prepare, ALongDocumentHasTheTokensOfItsWholeText) {
  const std::string text = long_text();
  const std::string file = folder_.write("t.json", testing::metaspace_file().dump());
  const auto tokenizer = load_tokenizer(file);
  prepare_corpus(options({folder_.write("a.txt", text)}), *tokenizer, ignore);
  const auto corpus = open_corpus(folder_.path("out"), {.vocab_size = tokenizer->vocab_size()});
  EXPECT_EQ(all_tokens(*corpus), tokenizer->encode(text));
}

TEST_F(Prepare, ValidationIsTheRest) {
  PrepareOptions how = options({folder_.write("a.txt", long_text())});
  how.reader = {.document_lines = 10, .validation = 0.1};
  const PrepareProgress done = prepare_corpus(how, bytes_, ignore);
  EXPECT_EQ(done.train.tokens + done.validation.tokens, done.bytes);
  EXPECT_NEAR(static_cast<double>(done.validation.documents) / static_cast<double>(done.train.documents),
              0.11, 0.02);
  EXPECT_EQ(open_corpus(folder_.path("out_validation"), {})->size(), done.validation.tokens);
}

TEST_F(Prepare, DuplicatesAreOnTheSameSideInWhateverTheyStand) {
  std::string lines, json, turned;
  for (int i = 0; i < 40; ++i) {
    const std::string text = "line " + std::to_string(i);
    lines += text + "\n";
    json += R"({"text": ")" + text + R"(", "id": )" + std::to_string(i) + "}\n";
    turned += R"({"id": ")" + std::to_string(i + 7) + R"(", "text": ")" + text + "\"}\n";
  }
  lines.pop_back();
  PrepareOptions how = options({});
  how.reader = {.document_lines = 1, .validation = 0.5};
  const auto validation_of = [&](const std::string& path) {
    how.inputs = list_inputs({path}, "auto");
    prepare_corpus(how, bytes_, ignore);
    std::string text = decoded("out_validation");
    std::erase(text, '\n');
    return text;
  };
  const std::string expected = validation_of(folder_.write("a.txt", lines));
  EXPECT_THAT(expected, HasSubstr("line "));
  EXPECT_EQ(validation_of(folder_.write("b.jsonl", json)), expected);
  EXPECT_EQ(validation_of(folder_.write("c.jsonl", turned)), expected);
}

// Stops as a signal would: in the midst of the work, with what is saved at that moment.
void interrupt_after_saving(const PrepareOptions& how, const Tokenizer& tokenizer) {
  const auto stop = [&](const PrepareProgress&) {
    if (std::filesystem::exists(how.output + ".progress")) throw std::runtime_error("stop");
  };
  EXPECT_THROW(prepare_corpus(how, tokenizer, stop), std::runtime_error);
}

class ResumedPrepare : public Prepare {
 protected:
  ResumedPrepare() {
    for (int i = 0; i < 2; ++i)
      paths_.push_back(folder_.write("in" + std::to_string(100 + i) + ".txt", long_text()));
    paths_.push_back(folder_.write("last.txt", "the end"));
  }
  std::vector<std::string> paths_;
};

TEST_F(ResumedPrepare, KeepsAllThatWasDoneWhenItIsStopped) {
  PrepareOptions how = options(paths_);
  how.bytes_between_saves = std::uint64_t{1} << 40;
  std::uint64_t done = 0;
  const auto stop = [&](const PrepareProgress& progress) {
    done = progress.bytes;
    if (done > 0) throw std::runtime_error("stop");
  };
  EXPECT_THROW(prepare_corpus(how, bytes_, stop), std::runtime_error);
  EXPECT_GT(done, 0U);
  EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, done);
}

// Nobody knows whether the text would have gone on.
TEST_F(ResumedPrepare, StoppedAtTheEndOfTheTextItKeepsAllButTheLast) {
  const std::string text = long_text() + long_text();
  const auto half = text.size() / 2;
  for (const std::uint64_t interval : {std::uint64_t{1}, std::uint64_t{1} << 40}) {
    PrepareOptions how = options({folder_.write("text.txt", text.substr(0, half))});
    how.bytes_between_saves = interval;
    const auto stop = [&](const PrepareProgress& progress) {
      if (progress.bytes == half) throw std::runtime_error("stop");
    };
    EXPECT_THROW(prepare_corpus(how, bytes_, stop), std::runtime_error);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.idx")));
    folder_.write("text.txt", text);
    const PrepareProgress done = prepare_corpus(how, bytes_, ignore);
    EXPECT_GT(done.resumed_bytes, 0U);
    EXPECT_LT(done.resumed_bytes, half);
    EXPECT_TRUE(decoded("out") == text);
    for (const char* name : {"out.bin", "out.idx"}) std::filesystem::remove(folder_.path(name));
  }
}

TEST_F(ResumedPrepare, StoppedAtTheEndOfOneChunkItLeavesNothing) {
  PrepareOptions how = options({folder_.write("text.txt", "the end")});
  how.bytes_between_saves = std::uint64_t{1} << 40;
  const std::vector<std::string> before = folder_.names();
  const auto stop = [](const PrepareProgress&) { throw std::runtime_error("stop"); };
  EXPECT_THROW(prepare_corpus(how, bytes_, stop), std::runtime_error);
  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAreArray(before));
}

TEST_F(ResumedPrepare, GoesOnWhereItWas) {
  const PrepareOptions how = options(paths_);
  interrupt_after_saving(how, bytes_);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.idx")));
  const PrepareProgress done = prepare_corpus(how, bytes_, ignore);
  EXPECT_GT(done.resumed_bytes, 0U);
  EXPECT_LT(done.resumed_bytes, done.bytes);
  std::string expected;
  for (const std::string& path : paths_) expected += folder_.read(std::filesystem::path(path).filename());
  EXPECT_EQ(decoded("out"), expected);
  EXPECT_EQ(MegatronIndex(folder_.path("out.idx")).documents(), paths_.size());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.progress")));
}

TEST_F(ResumedPrepare, BeginsAnewWhenAnythingHasChanged) {
  PrepareOptions how = options(paths_);
  interrupt_after_saving(how, bytes_);
  how.end_of_document = 256;
  EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);

  interrupt_after_saving(how, bytes_);
  std::string changed = long_text();
  changed[100] = '?';
  folder_.write("in100.txt", changed);
  EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);
  EXPECT_EQ(decoded("out").substr(0, changed.size()), changed);

  interrupt_after_saving(how, bytes_);
  std::filesystem::remove(folder_.path("out.bin.partial"));
  EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);
}

TEST_F(ResumedPrepare, BeginsAnewWhenTheTextIsReadOtherwise) {
  std::string json;
  while (json.size() < (5U << 20))
    json += R"({"text": "And God said, Let there be light"})"
            "\n";
  const std::string path = folder_.write("in.jsonl", json);
  PrepareOptions how = options({path});
  how.reader.document_lines = 1;  // so that documents stand in the same places, read in either way
  interrupt_after_saving(how, bytes_);
  how.inputs = list_inputs({path}, "text");
  EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);
  EXPECT_TRUE(decoded("out") == json);
}

TEST_F(ResumedPrepare, BeginsAnewWhenTheSavedProgressCannotBe) {
  const PrepareOptions how = options(paths_);
  const std::string path = folder_.path("out.progress");
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;  // a multiple of it is 0 in 64 bits
  for (std::uint64_t SavedProgress::*const number : {&SavedProgress::chunks, &SavedProgress::digest}) {
    interrupt_after_saving(how, bytes_);
    SavedProgress saved = load_progress(path).value();
    saved.*number = kHuge;
    save_progress(path, saved);
    EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);
  }
  for (std::uint64_t MegatronWriter::Mark::*const number :
       {&MegatronWriter::Mark::sequences, &MegatronWriter::Mark::tokens}) {
    interrupt_after_saving(how, bytes_);
    SavedProgress saved = load_progress(path).value();
    saved.train.*number = kHuge;
    save_progress(path, saved);
    EXPECT_EQ(prepare_corpus(how, bytes_, ignore).resumed_bytes, 0U);
  }
}

TEST_F(Prepare, BadInputLeavesTheOldCorpus) {
  prepare_corpus(options({folder_.write("good.txt", "good")}), bytes_, ignore);
  EXPECT_THAT(error_of<DataError>(
                  [&] { prepare_corpus(options({folder_.write("bad.txt", "b\xFF")}), bytes_, ignore); }),
              HasSubstr("bad.txt at byte 1"));
  EXPECT_EQ(decoded("out"), "good");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.bin.partial")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.idx.partial")));
}

class ReplacedCorpus : public Prepare {
 protected:
  ReplacedCorpus() {
    std::string lines;
    for (int i = 0; i < 100; ++i) lines += "line " + std::to_string(i) + "\n";
    how_ = options({folder_.write("a.txt", lines)});
    how_.reader = {.document_lines = 1, .validation = 0.5};
    how_.tokenizer_file = folder_.path("out.tokenizer.json");
    prepare_corpus(how_, bytes_, ignore);
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }

  static constexpr const char* kFiles[] = {"out.bin",
                                           "out.idx",
                                           "out_validation.bin",
                                           "out_validation.idx",
                                           "out.tokenizer.json",
                                           "out_validation.tokenizer.json"};
  PrepareOptions how_;
};

TEST_F(ReplacedCorpus, HasItsTokenizerBesideIt) {
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("a.txt", "out.bin", "out.idx", "out_validation.bin", "out_validation.idx",
                                   "out.tokenizer.json", "out_validation.tokenizer.json"));
  EXPECT_EQ(folder_.read("out.tokenizer.json"), bytes_.serialized());
  EXPECT_EQ(folder_.read("out_validation.tokenizer.json"), bytes_.serialized());
}

TEST_F(ReplacedCorpus, StaysWhenTheNewOneCannotBeWritten) {
  const auto other = load_tokenizer(folder_.write("t.json", testing::metaspace_file().dump()));
  std::map<std::string, std::string> before;
  for (const char* name : kFiles) before[name] = folder_.read(name);
  for (const char* obstacle : {"out.tokenizer.json.new", "out_validation.tokenizer.json.new",
                               "out_validation.idx.new", "out.idx.new"}) {
    std::filesystem::create_directory(folder_.path(obstacle));
    EXPECT_THROW(prepare_corpus(how_, *other, ignore), UsageError);
    for (const char* name : kFiles) {
      ASSERT_TRUE(is_there(name)) << name << " after " << obstacle;
      EXPECT_TRUE(folder_.read(name) == before[name]) << name << " after " << obstacle;
    }
    std::filesystem::remove(folder_.path(obstacle));
  }
}

// What a crash between two renames would leave.
TEST_F(ReplacedCorpus, IsNeverBelievedInParts) {
  const auto other = load_tokenizer(folder_.write("t.json", testing::metaspace_file().dump()));
  for (const char* obstacle :
       {"out.tokenizer.json", "out_validation.tokenizer.json", "out_validation.bin", "out_validation.idx"}) {
    prepare_corpus(how_, bytes_, ignore);
    std::filesystem::remove(folder_.path(obstacle));
    folder_.write(std::string(obstacle) + "/in_the_way", "");
    EXPECT_THROW(prepare_corpus(how_, *other, ignore), UsageError);
    EXPECT_FALSE(is_there("out.idx")) << obstacle;
    EXPECT_FALSE(is_there("out.bin")) << obstacle;
    EXPECT_FALSE(std::filesystem::is_regular_file(folder_.path("out_validation.idx"))) << obstacle;
    if (std::filesystem::is_regular_file(folder_.path("out.tokenizer.json"))) {
      EXPECT_EQ(folder_.read("out.tokenizer.json"), other->serialized()) << obstacle;
    }
    std::filesystem::remove_all(folder_.path(obstacle));
    prepare_corpus(how_, *other, ignore);
    EXPECT_GT(open_corpus(folder_.path("out"), {.vocab_size = other->vocab_size()})->size(), 0U) << obstacle;
  }
}

// They may be of another program, which leaves no sign of itself.
TEST_F(ReplacedCorpus, LeavesValidationThatItDoesNotReplace) {
  const std::string tokens = folder_.read("out_validation.bin"), index = folder_.read("out_validation.idx");
  EXPECT_FALSE(has_validation_of_before(how_));
  how_.reader.validation = 0;
  prepare_corpus(how_, bytes_, ignore);
  EXPECT_TRUE(folder_.read("out_validation.bin") == tokens);
  EXPECT_TRUE(folder_.read("out_validation.idx") == index);
  EXPECT_FALSE(has_validation_of_before(how_)) << "its tokenizer is the same";
  prepare_corpus(how_, *load_tokenizer(folder_.write("t.json", testing::metaspace_file().dump())), ignore);
  EXPECT_EQ(folder_.read("out_validation.tokenizer.json"), bytes_.serialized());
  EXPECT_TRUE(has_validation_of_before(how_)) << "its tokenizer is another one";
  std::filesystem::resize_file(folder_.path("out_validation.tokenizer.json"), (std::uintmax_t{1} << 28) + 1);
  EXPECT_TRUE(has_validation_of_before(how_)) << "no tokenizer is as large";
  std::filesystem::remove(folder_.path("out_validation.tokenizer.json"));
  EXPECT_TRUE(has_validation_of_before(how_)) << "nothing tells";
  std::filesystem::remove(folder_.path("out_validation.bin"));
  EXPECT_FALSE(has_validation_of_before(how_));
}

TEST_F(ReplacedCorpus, LeavesWhatWasPreparedByItself) {
  PrepareOptions apart = how_;
  apart.output = folder_.path("out_validation");
  apart.tokenizer_file = apart.output + ".tokenizer.json";
  apart.reader.validation = how_.reader.validation = 0;
  prepare_corpus(apart, bytes_, ignore);
  prepare_corpus(how_, bytes_, ignore);
  EXPECT_EQ(folder_.read("out_validation.bin"), folder_.read("out.bin"));
  EXPECT_FALSE(has_validation_of_before(how_));
}

TEST_F(ReplacedCorpus, LosesATokenizerOfTheOtherKind) {
  how_.tokenizer_file = folder_.path("out.tokenizer.model");
  prepare_corpus(how_, bytes_, ignore);
  for (const std::string prefix : {"out", "out_validation"}) {
    EXPECT_FALSE(is_there(prefix + ".tokenizer.json")) << prefix;
    EXPECT_TRUE(is_there(prefix + ".tokenizer.model")) << prefix;
  }
}

TEST_F(Prepare, OnlyOneWritesAnOutput) {
  const PrepareOptions how = options({folder_.write("a.txt", "a")});
  const FileLock lock(folder_.path("out.lock"));
  EXPECT_THAT(error_of<InUseError>([&] { prepare_corpus(how, bytes_, ignore); }),
              HasSubstr("is writing here"));
}

TEST_F(Prepare, MissingInputsAreTheUsersMistake) {
  EXPECT_THAT(error_of<UsageError>([&] { list_inputs({folder_.path("none")}, "auto"); }),
              HasSubstr("there is no such"));
  EXPECT_THAT(error_of<UsageError>([&] { list_inputs({folder_.path("")}, "auto"); }),
              HasSubstr("has no text"));
  EXPECT_THAT(error_of<UsageError>([&] { list_inputs({"-"}, "xml"); }), HasSubstr("'xml'"));
  EXPECT_EQ(list_inputs({"-"}, "jsonl"), (std::vector<Input>{{"-", InputFormat::jsonl}}));
}

TEST_F(Prepare, TrainsTheSameTokenizerOnAnyNumberOfThreads) {
  PrepareOptions how = options({folder_.write("a.txt", long_text())});
  const TrainTokenizerOptions training{.vocab_size = 300, .pattern = kLlama3Pattern};
  const BpeModel one = train_tokenizer(how, training, ignore);
  how.threads = 3;
  EXPECT_EQ(train_tokenizer(how, training, ignore), one);
  EXPECT_EQ(one.tokens.size(), 300U);
  how.inputs = {{"-", InputFormat::text}};
  EXPECT_THROW(train_tokenizer(how, training, ignore), UsageError);
}

TEST(SavedProgress, SurvivesItsFileAndRefusesACutOne) {
  TemporaryFolder folder;
  const SavedProgress progress{1, 2, 3, 4, {5, 6, 7}, {8, 9, ~std::uint64_t{0}}};
  save_progress(folder.path("p"), progress);
  EXPECT_EQ(load_progress(folder.path("p")), progress);
  const std::string text = folder.read("p");
  for (std::size_t size = 0; size < text.size(); ++size) {
    folder.write("p", text.substr(0, size));
    EXPECT_EQ(load_progress(folder.path("p")), std::nullopt) << size;
  }
  for (const char* other :
       {"lockstep-prepare-1 1 -2 3 4 5 6 7 8 9 10 end\n", "lockstep-prepare-1 1 +2 3 4 5 6 7 8 9 10 end\n",
        "lockstep-prepare-1 1 2 3 4 5 6 7 8 9 10 end\nmore"}) {
    folder.write("p", other);
    EXPECT_EQ(load_progress(folder.path("p")), std::nullopt) << other;
  }
  EXPECT_EQ(load_progress(folder.path("none")), std::nullopt);
}

}  // namespace
}  // namespace lockstep::data
