// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/link_model.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/connect.h"

#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::comm {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::string& text) {
  try {
    parse_link_model(text, "links.toml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

// The model as text with one line of it replaced.
std::string replaced(const std::string& line, const std::string& by) {
  std::string text = to_toml(LinkModel{});
  const std::size_t at = text.find(line + "\n");
  EXPECT_NE(at, std::string::npos) << line << " in\n" << text;
  return text.replace(at, line.size(), by);
}

TEST(LinkModel, IsReadAsItIsWritten) {
  const LinkModel model{.memory = {.latency_us = 0.1, .message_us = 0, .gigabytes_per_second = 1.0 / 3},
                        .network = {.latency_us = 1e6, .message_us = 2.5, .gigabytes_per_second = 0.001},
                        .add_gigabytes_per_second = 17.25};
  EXPECT_EQ(parse_link_model(to_toml(model), "links.toml"), model);
  EXPECT_EQ(parse_link_model(to_toml(LinkModel{}), "links.toml"), LinkModel{});
}

TEST(LinkModel, MpiHasALinkOfItsOwnOrThatOfTheNetwork) {
  LinkModel model;
  EXPECT_EQ(over_mpi(model), model);
  model.mpi = Link{.latency_us = 1.5, .message_us = 0.25, .gigabytes_per_second = 5};
  EXPECT_EQ(parse_link_model(to_toml(model), "links.toml"), model);
  EXPECT_EQ(over_mpi(model).network, *model.mpi);
  EXPECT_EQ(over_mpi(model).memory, model.memory);
  EXPECT_THAT(to_toml(LinkModel{}), Not(HasSubstr("mpi"))) << "a file that older programs read";
}

TEST(LinkModel, TheLinkOfMpiMustBeCompleteToo) {
  const std::string whole = to_toml(LinkModel{});
  EXPECT_THAT(error_of(whole + "[comm.model.mpi]\n"),
              HasSubstr("links.toml: latency_us is missing in [comm.model.mpi]"));
  EXPECT_THAT(error_of(whole + "[comm.model.mpi]\nlatency_us = 1\nmessage_us = 1\n"),
              HasSubstr("gigabytes_per_second is missing in [comm.model.mpi]"));
}

TEST(LinkModel, CommentsBlanksAndTheOrderOfSectionsDoNotMatter) {
  const std::string text =
      "# measured on node7\n\n[comm.model.network]\r\n  latency_us=1\nmessage_us = 2 # each\n"
      "gigabytes_per_second = 3\n[comm.model.memory]\nlatency_us = 4\nmessage_us = 5\n"
      "gigabytes_per_second = 6\n[comm.model]\nadd_gigabytes_per_second = 7";
  EXPECT_EQ(parse_link_model(text, "x"),
            LinkModel({.memory = {4, 5, 6}, .network = {1, 2, 3}, .add_gigabytes_per_second = 7}));
}

TEST(LinkModel, SaysWhichLineIsWrong) {
  EXPECT_EQ(error_of("latency"), "links.toml:1: expected [section] or key = number");
  EXPECT_EQ(error_of("[comm]\n\nlatency_us = 1"),
            "links.toml:3: a link model has no such key in this section");
  EXPECT_EQ(error_of("[comm.model]\nadd_gigabytes_per_second = 1\nadd_gigabytes_per_second = 1"),
            "links.toml:3: add_gigabytes_per_second is there twice");
  for (const char* bad : {"", "x", "1x", "-1", "nan", "inf", "1e300", "0x10", "1,5"}) {
    EXPECT_THAT(error_of(replaced("latency_us = 15", fmt::format("latency_us = {}", bad))),
                HasSubstr("latency_us must be a number from 0 to"))
        << bad;
  }
  EXPECT_THAT(error_of(replaced("gigabytes_per_second = 2", "gigabytes_per_second = 0")),
              HasSubstr("gigabytes_per_second must be a number from 1e-06"));
}

TEST(LinkModel, MustBeComplete) {
  EXPECT_THAT(error_of(replaced("message_us = 4", "")),
              HasSubstr("links.toml: message_us is missing in [comm.model.network]"));
  EXPECT_THAT(error_of(""), HasSubstr("is missing"));
}

TEST(LinkModel, ComesFromAFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(load_link_model(folder.write("links.toml", to_toml(LinkModel{}))), LinkModel{});
  EXPECT_THROW(load_link_model(folder.write("long", std::string(2'000'000, '#'))), UsageError);
  EXPECT_THROW(load_link_model(folder.path() / "absent"), UsageError);
  EXPECT_THROW(load_link_model("/"), UsageError);
}

TEST(LinkModel, TheEnvironmentNamesTheFile) {
  {
    const test::ScopedVariable variable("LOCKSTEP_LINK_MODEL", "/nowhere/links.toml");
    EXPECT_THROW(connect(rendezvous::Placement{}), UsageError);
  }
  const test::ScopedVariable variable("LOCKSTEP_LINK_MODEL", "");
  EXPECT_EQ(connect(rendezvous::Placement{}).size(), 1);
}

}  // namespace
}  // namespace lockstep::comm
