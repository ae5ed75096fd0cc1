// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/manifest.h"

#include <cmath>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

#include "tests/checkpoint/saved.h"
#include "tests/support/error_of.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;
using test::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A matrix of 4 x 6, cut by columns, and a vector, in two files.
Manifest good() {
  Manifest manifest =
      testing::manifest_of({testing::full_tensor("m", {4, 6}), testing::full_tensor("v", {5})}, 7);
  manifest.last_step = {
      .gradient_norm = 1.5, .learning_rate = 0.01, .loss_scale = 2048, .seconds = 0.5, .updated = 0};
  manifest.tokenizer_digest = "t\"\n\xC3\xA4";
  manifest.files = {{.name = "rank-0.safetensors",
                     .bytes = 200,
                     .hash = {1, 2},
                     .pieces = {{"m", "m@0", {0, 2, 6, 4}, {3, 4}}, {"v", "v@0", {0, 5, 5, 1}, {5, 6}}}},
                    {.name = "rank-1.safetensors",
                     .bytes = 300,
                     .hash = {7, 8},
                     .pieces = {{"m", "m@2", {2, 4, 6, 4}, {9, 10}}}}};
  return manifest;
}

std::string refusal_of_text(const std::string& text) {
  return error_of<DataError>([&] { parse_manifest(text, "f"); });
}
std::string refusal_of(const std::function<void(Manifest&)>& change) {
  Manifest manifest = good();
  change(manifest);
  return refusal_of_text(to_json(manifest));
}

TEST(Manifest, GoesThereAndBack) {
  EXPECT_EQ(parse_manifest(to_json(good()), "f"), good());
  const ShardFile file = good().files[0];
  EXPECT_EQ(parse_shard_file(to_json(file), "f"), file);
  Manifest empty;
  empty.tensors = {{"e", {0, 3}}};
  EXPECT_EQ(parse_manifest(to_json(empty), "f"), empty);
}

// The places of all values, objects and lists in it.
std::vector<json::json_pointer> places_in(const json& value,
                                          const json::json_pointer& place = json::json_pointer()) {
  std::vector<json::json_pointer> places = {place};
  if (!value.is_structured()) return places;
  for (const auto& [key, inner] : value.items()) {
    const auto below =
        value.is_array() ? places_in(inner, place / std::stoul(key)) : places_in(inner, place / key);
    places.insert(places.end(), below.begin(), below.end());
  }
  return places;
}

TEST(Manifest, EveryValueHasOneKind) {
  const json whole = json::parse(to_json(good()));
  for (const auto& place : places_in(whole)) {
    const json& before = whole.at(place);
    for (const json& other : {json(nullptr), json(true), json("x"), json(12), json(-12), json(1.5),
                              json(1e300), json(18446744073709551615U), json::array(), json::object(),
                              json({{"x", 1}}), json::array({1}), json::array({json::object()})}) {
      json changed = whole;
      changed.at(place) = other;
      const std::string refusal = refusal_of_text(changed.dump());
      const bool same_kind = other.type() == before.type() || (other.is_number() && before.is_number());
      if (!same_kind) {
        EXPECT_THAT(refusal, StartsWith("f: ")) << place << " " << other;
      } else if (refusal != "no such error") {
        EXPECT_THAT(refusal, StartsWith("f: ")) << place << " " << other;
      }
    }
  }
}

TEST(Manifest, EveryKeyComesOnce) {
  const json whole = json::parse(to_json(good()));
  for (const auto& place : places_in(whole)) {
    if (!whole.at(place).is_object()) continue;
    json more = whole;
    more.at(place)["another"] = 1;
    EXPECT_THAT(refusal_of_text(more.dump()), HasSubstr("another is no known key")) << place;
    for (const auto& [key, value] : whole.at(place).items()) {
      json fewer = whole;
      fewer.at(place).erase(key);
      if (key != "arithmetic" && key != "last_step") {
        EXPECT_THAT(refusal_of_text(fewer.dump()), HasSubstr(key + " is missing")) << place;
      }
      // The first of its members twice, written by hand because no object can hold that.
      const std::string member = json(key).dump() + ":" + value.dump();
      std::string twice = whole.dump();
      twice.insert(twice.find(member), member + ",");
      EXPECT_THAT(refusal_of_text(twice), HasSubstr(key + " comes twice")) << place;
    }
  }
}

TEST(Manifest, OfOldNobodyKnowsWhatComputedIt) {
  json old = json::parse(to_json(good()));
  old.erase("arithmetic");
  EXPECT_EQ(parse_manifest(old.dump(), "f").arithmetic, "");
}

TEST(Manifest, OfOldNobodyKnowsWhatTheLastStepCameTo) {
  json old = json::parse(to_json(good()));
  old.erase("last_step");
  EXPECT_EQ(parse_manifest(old.dump(), "f").last_step, std::nullopt);
}

TEST(Manifest, NumbersHaveRanges) {
  const json whole = json::parse(to_json(good()));
  for (const auto& place : places_in(whole)) {
    if (!whole.at(place).is_number() || place.back() == "loss") continue;
    const std::set<std::string> fractions = {"gradient_norm", "learning_rate", "loss_scale", "seconds"};
    for (const json& other : {json(-1), json(1.5), json(1e300), json(-9223372036854775807 - 1)}) {
      if (fractions.contains(place.back()) && other > 0) continue;
      json changed = whole;
      changed.at(place) = other;
      EXPECT_THAT(refusal_of_text(changed.dump()), StartsWith("f: ")) << place << " " << other;
    }
  }
  EXPECT_THAT(refusal_of([](Manifest& m) { m.lanes = 0; }), HasSubstr("lanes is 0"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.tensor_lanes = 0; }), HasSubstr("tensor_lanes is 0"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.progress.loss_scale = 0; }), HasSubstr("loss_scale"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.progress.loss_scale = INFINITY; }), HasSubstr("loss_scale"));
}

TEST(Manifest, TheLastStepIsOneThatCanBeToldAgain) {
  const auto with = [](const std::function<void(LastStep&)>& change) {
    return refusal_of([&](Manifest& m) { change(*m.last_step); });
  };
  EXPECT_EQ(with([](LastStep& step) { step.gradient_norm = NAN; }), "no such error") << "it was skipped";
  EXPECT_EQ(with([](LastStep& step) { step.gradient_norm = INFINITY; }), "no such error");
  EXPECT_EQ(with([](LastStep& step) { step = {.seconds = 0, .updated = 1}; }), "no such error");
  EXPECT_EQ(with([](LastStep& step) { step.gradient_norm = -INFINITY; }),
            "f: last_step.gradient_norm is below 0");
  for (const std::int64_t updated : {-1, 2}) {
    EXPECT_EQ(with([&](LastStep& step) { step.updated = updated; }),
              "f: last_step.updated is " + std::to_string(updated) + ", and must be 0 or 1");
  }
  for (const double scale : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_EQ(with([&](LastStep& step) { step.loss_scale = scale; }),
              "f: last_step.loss_scale is not a positive number");
  }
  for (const double bad : {-1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_EQ(with([&](LastStep& step) { step.learning_rate = bad; }),
              "f: last_step.learning_rate is not a number of at least 0");
    EXPECT_EQ(with([&](LastStep& step) { step.seconds = bad; }),
              "f: last_step.seconds is not a number of at least 0");
  }
  EXPECT_EQ(refusal_of([](Manifest& m) { m.progress.step = 0; }),
            "f: it has last_step, but progress.step is 0");
}

TEST(Manifest, IsOfOneFormatAndVersion) {
  json changed = json::parse(to_json(good()));
  changed["version"] = 2;
  EXPECT_THAT(refusal_of_text(changed.dump()), HasSubstr("version is 2, but this program knows 1"));
  changed["version"] = 1;
  changed["format"] = "other";
  EXPECT_THAT(refusal_of_text(changed.dump()), HasSubstr("format is 'other', not 'lockstep-checkpoint'"));
  EXPECT_THAT(refusal_of_text(to_json(good().files[0])), HasSubstr("lockstep-checkpoint-shard"));
}

TEST(Manifest, FilesHavePlainNames) {
  for (const char* name : {"", ".", "..", "/", "/etc/passwd.safetensors", "../rank-0.safetensors",
                           "a/b.safetensors", "a..safetensors", ".hidden.safetensors", "rank 0.safetensors",
                           "rank-0.safetensors\n", "COMMIT", "manifest.json", "\xC3\xA4.safetensors"}) {
    EXPECT_THAT(refusal_of([&](Manifest& m) { m.files[1].name = name; }), HasSubstr("is no name of a"))
        << name;
  }
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].name = std::string("a\0.safetensors", 14); }),
              StartsWith("f: 'a"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].name = std::string(300, 'a') + ".safetensors"; }),
              HasSubstr("is no name of a"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].name = m.files[0].name; }),
              HasSubstr("rank-0.safetensors comes twice"));
}

TEST(Manifest, TensorsComeOnceAndInOrder) {
  EXPECT_THAT(refusal_of([](Manifest& m) { std::swap(m.tensors[0], m.tensors[1]); }), HasSubstr("'m' comes"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.tensors.push_back(m.tensors[1]); }), HasSubstr("'v' comes"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.tensors[0].name = ""; }), HasSubstr("has no name"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.tensors.pop_back(); }),
              HasSubstr("has a piece of 'v', which is no tensor of it"));
}

TEST(Manifest, ShapesThatDoNotFit) {
  const std::int64_t large = std::int64_t{1} << 31;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{-1}, {large, large}, {large, large, large, large, 0}, {0, INT64_MAX}}) {
    EXPECT_THAT(refusal_of([&](Manifest& m) { m.tensors[0].shape = shape; }), HasSubstr("too many elements"));
  }
  json changed = json::parse(to_json(good()));
  changed["tensors"][0]["shape"] = std::vector<int>(65, 1);
  EXPECT_THAT(refusal_of_text(changed.dump()), HasSubstr("tensors.shape has more than 64 numbers"));
}

TEST(Manifest, PiecesMakeUpTheTensors) {
  const auto with = [](const Runs& runs) {
    return refusal_of([&](Manifest& m) { m.files[1].pieces[0].elements = runs; });
  };
  EXPECT_EQ(with({2, 4, 6, 4}), "no such error");
  EXPECT_EQ(with({2, 3, 6, 4}), "f: tensor 'm' has no piece with element 5");
  EXPECT_EQ(with({1, 5, 6, 4}), "f: tensor 'm' has element 1 in two pieces");
  EXPECT_EQ(with({2, 4, 6, 3}), "f: tensor 'm' has no piece with element 20");
  EXPECT_EQ(with({2, 5, 6, 4}), "f: a piece of 'm' ends with element 24, but the tensor has 24");
  const std::size_t huge = std::size_t{1} << 63;
  for (const Runs& runs :
       {Runs{2, 0, 6, 4}, Runs{2, 4, 6, 0}, Runs{2, 4, 3, 4}, Runs{huge, 4, 6, 4}, Runs{2, huge, 6, 1},
        Runs{2, huge, huge, 3}, Runs{2, 4, huge, 3}, Runs{2, 4, 6, huge},
        Runs{~std::size_t{0}, ~std::size_t{0}, ~std::size_t{0}, ~std::size_t{0}}}) {
    EXPECT_THAT(with(runs), HasSubstr("is empty, overlaps itself or is too large"));
  }
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files.pop_back(); }), HasSubstr("has no piece with element 2"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[0].pieces.push_back(m.files[0].pieces[1]); }),
              HasSubstr("has 'v@0' twice"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].pieces[0].tensor = "w"; }), HasSubstr("piece of 'w'"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].pieces[0].tensor = ""; }), HasSubstr("without a name"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].pieces[0].in_file = ""; }),
              HasSubstr("without a name"));
  EXPECT_THAT(refusal_of([](Manifest& m) { m.files[1].bytes = 63; }),
              HasSubstr("the pieces of rank-1.safetensors are larger than its 63 bytes"));
}

TEST(Manifest, TextThatIsNoManifest) {
  for (const char* text :
       {"", " ", "{", "[]", "1", "null", "\"x\"", "{}", "{} {}", "\xFF", "{\"a\":1}", "[[["}) {
    EXPECT_THAT(refusal_of_text(text), StartsWith("f: ")) << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"progress":)";
  EXPECT_THAT(refusal_of_text(deep), StartsWith("f: "));
  const std::string whole = to_json(good());
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_THAT(refusal_of_text(whole.substr(0, size)), StartsWith("f: ")) << size;
  }
}

TEST(Manifest, WhatIsNotTextIsWrittenAsWellAsItCanBe) {
  Manifest manifest = good();
  manifest.configuration = "path = \"\xFF\"";
  EXPECT_THAT(parse_manifest(to_json(manifest), "f").configuration, StartsWith("path = \""));
}

}  // namespace
}  // namespace lockstep::checkpoint
