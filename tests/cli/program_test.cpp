// SPDX-License-Identifier: Apache-2.0
//
// The program as users meet it: help, version, doctor, keygen, and one sentence for every kind of bad input.
#include "tests/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lockstep/transport/connect/listener.h"

#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Program, PrintsVersionAndHelp) {
  const Finished version = run_program({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output,
              MatchesRegex("lockstep [0-9]+\\.[0-9]+\\.[0-9]+\ntransports: loopback shm tcp(.|\n)*"));
  const Finished help = run_program({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* text : {"bench", "doctor", "failpoints", "keygen", "launch", "Exit codes"}) {
    EXPECT_THAT(help.output, HasSubstr(text));
  }
  for (const char* command : {"doctor", "keygen", "launch", "bench"}) {
    EXPECT_EQ(run_program({command, "--help"}).exit_code, 0) << command;
    EXPECT_EQ(run_program({"help", command}).output, run_program({command, "--help"}).output);
  }
  EXPECT_EQ(run_program({"version"}).output, version.output);
  EXPECT_EQ(run_program({"help"}).output, help.output);
  EXPECT_EQ(run_program({"launch", "--", "printf", "%s", "--help"}).output, "--help");
  EXPECT_THAT(run_program({"launch", "--help"}).output, HasSubstr("[--] PROGRAM [ARGUMENTS...]"));
  EXPECT_THAT(run_program({"bench", "--help"}).output,
              AllOf(HasSubstr("reduce_scatter"), HasSubstr("halving_doubling")));
}

TEST(Program, WithoutACommandItExplainsItself) {
  const Finished finished = run_program({});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output, HasSubstr("launch"));
}

TEST(Program, SuggestsWhatWasProbablyMeant) {
  expect_refusal(run_program({"lauch", "-n", "2"}), 2, "unknown command 'lauch': did you mean 'launch'?");
  expect_refusal(run_program({"frobnicate"}), 2,
                 "unknown command 'frobnicate': `lockstep --help` lists them");
  expect_refusal(run_program({"doctor", "--jsno"}), 2,
                 "unknown flag of lockstep doctor '--jsno': did you mean '--json'?");
  expect_refusal(run_program({"launch", "--worker=3", "true"}), 2,
                 "unknown flag of lockstep launch '--worker': did you mean '--workers'?");
  expect_refusal(run_program({"--verison"}), 2, "did you mean '--version'?");
}

TEST(Program, RefusesBadFlagValues) {
  expect_refusal(run_program({"launch", "-n", "0", "true"}), 2,
                 "-n is '0': expected a whole number from 1 to 4096");
  expect_refusal(run_program({"launch", "-nx", "true"}), 2,
                 "-n is 'x': expected a whole number from 1 to 4096");
  expect_refusal(run_program({"launch", "--workers=-1", "true"}), 2,
                 "--workers is '-1': expected a whole number");
  expect_refusal(run_program({"launch", "--grace", "nan", "true"}), 2,
                 "--grace is 'nan': expected a number from 0");
  expect_refusal(run_program({"launch", "-n"}), 2, "-n needs a value");
  expect_refusal(run_program({"launch", "--workers=", "true"}), 2, "--workers needs a value: ");
  expect_refusal(run_program({"bench", "collectives", "--op="}), 2, "--op needs a value: ");
  expect_refusal(run_program({"prepare", "a", "--tokenizer", "bytes", "--output", "data/"}), 2,
                 "--output is 'data/', which is a folder: name a prefix for the files, such as data/corpus");
  expect_refusal(run_program({"prepare", "a", "--tokenizer", "bytes", "--output", "."}), 2,
                 "--output is '.', which is a folder: name a prefix for the files, such as ./corpus");
  expect_refusal(run_program({"prepare", "a"}), 2,
                 "lockstep prepare needs --output: `lockstep prepare --help` explains it");
  expect_refusal(run_program({"launch", "-n", "2", "--workers", "3", "true"}), 2, "--workers is given twice");
  expect_refusal(run_program({"doctor", "--run-id", "--json"}), 2, "--run-id needs a value");
  expect_refusal(run_program({"doctor", "--json=yes"}), 2, "--json takes no value");
  expect_refusal(run_program({"doctor", "now"}), 2, "lockstep doctor does not take 'now'");
  expect_refusal(run_program({"keygen"}), 2, "lockstep keygen needs FILE");
  expect_refusal(run_program({"keygen", ""}), 2, "the name of the file is empty");
  expect_refusal(run_program({"keygen", "--", "-a", "b"}), 2, "lockstep keygen does not take 'b'");
  expect_refusal(run_program({"launch", "-x", "true"}), 2, "`lockstep launch --help` lists them");
  expect_refusal(run_program({"keygen", "a", "b"}), 2, "lockstep keygen does not take 'b'");
  expect_refusal(run_program({"launch", "-n", "2"}), 2, "no program to launch");
}

TEST(Doctor, SaysWhereEveryValueCameFrom) {
  const Finished finished = run_program(
      {"doctor", "--json", "--threads", "3"},
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}, {"LOCKSTEP_RUN_ID", "abc"}});
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  const json report = json::parse(finished.output);
  EXPECT_EQ(report["placement"]["rank"], (json{{"value", 1}, {"source", "RANK (torchrun)"}}));
  EXPECT_EQ(report["placement"]["local-rank"], (json{{"value", nullptr}, {"source", "default"}}));
  EXPECT_EQ(report["placement"]["run-id"]["source"], "LOCKSTEP_RUN_ID");
  EXPECT_EQ(report["placement"]["threads"], (json{{"value", 3}, {"source", "--threads"}}));
  EXPECT_EQ(report["placement"]["master-addr"]["source"], "default");
  EXPECT_TRUE(report["transports"]["shm"]["available"]);
  EXPECT_TRUE(report["transports"]["tcp"]["available"]);
  EXPECT_GT(report["host"]["cores_usable"], 0);
  EXPECT_GT(report["host"]["memory_bytes"], 0);
  EXPECT_EQ(report["problems"], json::array());
}

TEST(Doctor, NamesAVariableThatIsMistyped) {
  const Finished finished = run_program({"doctor"}, {{"LOCKSTEP_RENK", "1"}});
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("LOCKSTEP_RENK is set, but nothing reads it: did you mean "
                                         "'LOCKSTEP_RANK'?"));
}

TEST(Doctor, PrintsTheSameForPeople) {
  const Finished finished = run_program({"doctor"}, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  for (const char* text : {"SLURM_PROCID", "transports", "open files", "all is well"}) {
    EXPECT_THAT(finished.output, HasSubstr(text));
  }
}

TEST(Doctor, ReportsWhatIsWrongAndFails) {
  const Finished finished = run_program({"doctor", "--json"}, {{"RANK", "9"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(finished.exit_code, 2);
  const json report = json::parse(finished.output);
  EXPECT_TRUE(report["placement"].is_null());
  ASSERT_EQ(report["problems"].size(), 1u);
  EXPECT_THAT(report["problems"][0].get<std::string>(),
              HasSubstr("rank 9 from RANK (torchrun) is not below"));
}

TEST(Doctor, TriesThePortWhereItWouldListen) {
  const transport::Listener taken({"127.0.0.1", 0, {}},
                                  {.me = {"test", -1, "test", 0}, .secret = {}, .tls = nullptr});
  const std::string port = std::to_string(taken.address().port);
  const std::vector<std::string> rank0 = {"--rank", "0", "--world", "2", "--master-port", port};
  const auto with = [&](std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  const Finished finished = run_program(with({"doctor", "--json"}, rank0));
  EXPECT_EQ(finished.exit_code, 2);
  const json problems = json::parse(finished.output)["problems"];
  ASSERT_EQ(problems.size(), 1u) << problems;
  EXPECT_EQ(run_program(with({"doctor", "--meet"}, rank0)).error_output,
            "lockstep: " + problems[0].get<std::string>() + "\n");
  for (const std::vector<std::string>& elsewhere :
       {std::vector<std::string>{"--rank", "1", "--world", "2", "--master-port", port},
        with(rank0, {"--rendezvous-server", "launcher"}),
        {"--rank", "0", "--world", "1", "--master-port", port},
        {"--rank", "0", "--world", "2", "--master-port", std::to_string(free_port())}}) {
    EXPECT_EQ(run_program(with({"doctor"}, elsewhere)).exit_code, 0);
  }
}

TEST(Doctor, NeverPrintsTheSecret) {
  const Environment with_secret = {{"LOCKSTEP_SECRET", "do-not-print-this-secret"}};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"doctor"}, {"doctor", "--json"}}) {
    const Finished finished = run_program(command, with_secret);
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_THAT(finished.output, HasSubstr("secret"));
    EXPECT_EQ((finished.output + finished.error_output).find("do-not-print"), std::string::npos);
  }
}

TEST(Doctor, SurvivesAReaderThatGoesAway) {
  Program program({"launch", "-n", "1", "sh", "-c", "exec \"$0\" doctor --json | true", LOCKSTEP_PROGRAM});
  EXPECT_EQ(program.finish().exit_code, 0);
}

TEST(Keygen, WritesAPrivateFileOnce) {
  TemporaryFolder folder;
  const std::string path = folder.path("secret");
  const Finished finished = run_program({"keygen", path});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const std::string secret = read_file(path);
  EXPECT_THAT(secret, MatchesRegex("[0-9a-f]+\n"));
  EXPECT_EQ(secret.size(), 65u);
  EXPECT_EQ(finished.output.find(secret.substr(0, 64)), std::string::npos);
  expect_refusal(run_program({"keygen", path}), 2, "already exists: a secret is never overwritten");
  EXPECT_EQ(read_file(path), secret);
  EXPECT_EQ(run_program({"doctor"}, {{"LOCKSTEP_SECRET_FILE", path}}).exit_code, 0);
}

TEST(Keygen, NamesAFolderThatDoesNotExist) {
  expect_refusal(run_program({"keygen", "/nonexistent/secret"}), 2,
                 "cannot write /nonexistent/secret: No such file or directory");
}

TEST(Keygen, SaysWhatToNameInstead) {
  const TemporaryFolder folder;
  expect_refusal(run_program({"keygen", folder.path("")}), 2, "is a folder: name the file to create in it");
  expect_refusal(run_program({"keygen", "/dev/null"}), 2, "/dev/null is there and is not an ordinary file");
  expect_refusal(run_program({"keygen", "/dev/shm"}), 2, "/dev/shm is a folder");
}

// --- Bad input.

TEST(BadInput, MalformedNodeList) {
  expect_refusal(
      run_program({"doctor", "--meet"},
                  {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "node[1-"}}),
      2, "SLURM_JOB_NODELIST: node list 'node[1-' at character 8: expected a number");
}

TEST(BadInput, MalformedHostFile) {
  TemporaryFolder folder;
  const std::string hosts = folder.write("hosts", "a slots=2\nb slots=many\n");
  expect_refusal(run_program({"launch", "--hostfile", hosts, "true"}), 2,
                 hosts + ":2: slots is 'many': expected a whole number from 1 to 4096");
  expect_refusal(run_program({"launch", "--hostfile", folder.path("none"), "true"}), 2,
                 "No such file or directory; it has a line such as `node1 slots=4` for each host");
  expect_refusal(run_program({"doctor", "--meet", "--hostfile", hosts}), 2, hosts + ":2: slots is 'many'");
}

Environment rank_of(int rank, int world, std::uint16_t port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"LOCKSTEP_RENDEZVOUS_TIMEOUT", "30"}};
}

TEST(BadInput, UnreachablePeer) {
  Environment environment = rank_of(1, 2, free_port());
  environment["LOCKSTEP_RENDEZVOUS_TIMEOUT"] = "1";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 75, "could not connect to 127.0.0.1");
}

TEST(BadInput, MissingRank) {
  Environment environment = rank_of(0, 3, free_port());
  environment["LOCKSTEP_RENDEZVOUS_TIMEOUT"] = "2";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 75, "2 of 3 ranks did not come");
}

TEST(BadInput, TwoRanksWithTheSameNumber) {
  const std::uint16_t port = free_port();
  std::vector<Program> programs;
  for (int rank : {0, 1, 1})
    programs.emplace_back(std::vector<std::string>{"doctor", "--meet"}, rank_of(rank, 3, port));
  for (Program& program : programs) expect_refusal(program.finish(), 2, "two processes claim rank 1");
}

TEST(BadInput, DifferentWorlds) {
  const std::uint16_t port = free_port();
  Program zero({"doctor", "--meet"}, rank_of(0, 3, port));
  Program one({"doctor", "--meet"}, rank_of(1, 2, port));
  expect_refusal(one.finish(), 2, "was started for a world of 2, but this run has 3 ranks");
  expect_refusal(zero.finish(), 2, "was started for a world of 2, but this run has 3 ranks");
}

TEST(BadInput, PortInUse) {
  const transport::Listener taken({"127.0.0.1", 0, {}},
                                  {.me = {"test", -1, "test", 0}, .secret = {}, .tls = nullptr});
  expect_refusal(run_program({"doctor", "--meet"}, rank_of(0, 2, taken.address().port)), 2, "is in use");
}

TEST(BadInput, MissingSecret) {
  Environment environment = rank_of(0, 2, free_port());
  environment["MASTER_ADDR"] = "192.0.2.1";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 2, "without a secret");
  environment["RANK"] = "1";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 2, "without a secret");
}

TEST(BadInput, SecretReadableByEveryone) {
  TemporaryFolder folder;
  const std::string path = folder.write("secret", "0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  Environment environment = rank_of(0, 2, free_port());
  environment["LOCKSTEP_SECRET_FILE"] = path;
  expect_refusal(run_program({"doctor", "--meet"}, environment), 2, "chmod 600");
}

TEST(BadInput, SecretFileMissing) {
  Environment environment = rank_of(0, 2, free_port());
  environment["LOCKSTEP_SECRET_FILE"] = "/nonexistent/secret";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 2, "/nonexistent/secret");
}

TEST(BadInput, SecretFileEmpty) {
  Environment environment = rank_of(0, 2, free_port());
  environment["LOCKSTEP_SECRET_FILE"] = "";
  const std::string sentence =
      "LOCKSTEP_SECRET_FILE is set, but empty: name the file of the secret, or unset it";
  expect_refusal(run_program({"doctor", "--meet"}, environment), 2, sentence);
  expect_refusal(run_program({"launch", "-n", "1", "true"}, environment), 2, sentence);
  // One sentence is enough: that there is no secret for other hosts is no second problem.
  environment["MASTER_ADDR"] = "192.0.2.1";
  const json problems = json::parse(run_program({"doctor", "--json"}, environment).output)["problems"];
  ASSERT_EQ(problems.size(), 1u) << problems;
  EXPECT_THAT(problems[0].get<std::string>(), HasSubstr(sentence));
}

TEST(BadInput, WrongSecret) {
  const std::uint16_t port = free_port();
  Environment zero = rank_of(0, 2, port);
  zero["LOCKSTEP_SECRET"] = "the right secret of this run";
  zero["LOCKSTEP_RENDEZVOUS_TIMEOUT"] = "3";
  Environment one = rank_of(1, 2, port);
  one["LOCKSTEP_SECRET"] = "some other secret for no run";
  Program server({"doctor", "--meet"}, zero);
  expect_refusal(run_program({"doctor", "--meet"}, one), 75, "refused");
  EXPECT_EQ(server.finish().exit_code, 75);
}

}  // namespace
}  // namespace lockstep::testing
