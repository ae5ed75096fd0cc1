// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/environment.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::rendezvous {
namespace {

using test::error_of;

Placement resolve(Environment environment, Settings command_line = {}, Settings config = {}) {
  return resolve_placement({.environment = std::move(environment),
                            .command_line = std::move(command_line),
                            .config = std::move(config),
                            .config_name = "run.toml",
                            .hosts = {},
                            .detected_host_id = "detected-id"});
}

std::string error_of(Environment environment, Settings command_line = {}, Settings config = {}) {
  return error_of<UsageError>([&] { resolve(environment, command_line, config); });
}

TEST(Environment, AloneWithoutAnything) {
  const Placement p = resolve({});
  for (const PlacementLine& line : describe(p)) {
    EXPECT_EQ(line.source, line.name == "host-id" ? "detected" : "default") << line.name;
  }
  EXPECT_EQ(p.rank.value, 0);
  EXPECT_EQ(p.world.value, 1);
  EXPECT_EQ(p.local_rank.value, std::nullopt);
  EXPECT_EQ(p.master(), (transport::Address{"127.0.0.1", 29'500, {}}));
  EXPECT_EQ(p.run.value, "default");
  EXPECT_TRUE(p.served_by_rank0.value);
  EXPECT_EQ(p.host_id.value, "detected-id");
  EXPECT_EQ(p.timeout.value, std::chrono::seconds(300));
}

Environment torchrun_environment() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"GROUP_RANK", "1"},
          {"MASTER_ADDR", "node-a"},
          {"MASTER_PORT", "4000"},
          {"TORCHELASTIC_RUN_ID", "job 7"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"OMP_NUM_THREADS", "3,2"}};
}

TEST(Environment, Torchrun) {
  const Placement p = resolve(torchrun_environment());
  EXPECT_EQ(p.rank.value, 5);
  EXPECT_EQ(p.rank.source, "RANK (torchrun)");
  EXPECT_EQ(p.world.value, 8);
  EXPECT_EQ(p.world.source, "WORLD_SIZE (torchrun)");
  EXPECT_EQ(p.local_rank.value, 1);
  EXPECT_EQ(p.local_world.value, 4);
  EXPECT_EQ(p.node_rank.value, 1);
  EXPECT_EQ(p.master(), (transport::Address{"node-a", 4000, {}}));
  EXPECT_EQ(p.run.value, "job_7");
  EXPECT_EQ(p.run.source, "TORCHELASTIC_RUN_ID");
  EXPECT_EQ(p.generation.value, 2u);
  EXPECT_EQ(p.threads.value, 3);
  EXPECT_EQ(p.threads.source, "OMP_NUM_THREADS");
}

struct AgentCase {
  const char* agent;
  const char* port;
  std::uint16_t expected;
};

TEST(Environment, TorchrunsAgentKeepsItsPort) {
  for (const AgentCase& c : {AgentCase{"True", "4000", 4001}, AgentCase{"False", "4000", 4000},
                             AgentCase{"True", "65535", 65'534}}) {
    Environment environment = torchrun_environment();
    environment["MASTER_PORT"] = c.port;
    environment["TORCHELASTIC_USE_AGENT_STORE"] = c.agent;
    EXPECT_EQ(resolve(environment).master_port.value, c.expected) << c.agent << " " << c.port;
    environment["LOCKSTEP_MASTER_PORT"] = "77";
    EXPECT_EQ(resolve(environment).master_port.value, 77) << "an explicit port is taken as it is";
  }
}

TEST(Environment, Slurm) {
  const Placement p = resolve({{"SLURM_PROCID", "3"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_LOCALID", "1"},
                               {"SLURM_NODEID", "1"},
                               {"SLURM_NTASKS_PER_NODE", "2"},
                               {"SLURM_JOB_NODELIST", "node[07-08],gpu1"},
                               {"SLURM_JOB_ID", "123456"},
                               {"SLURM_RESTART_COUNT", "1"},
                               {"SLURM_CPUS_PER_TASK", "16"}});
  EXPECT_EQ(p.rank.value, 3);
  EXPECT_EQ(p.rank.source, "SLURM_PROCID");
  EXPECT_EQ(p.world.value, 4);
  EXPECT_EQ(p.local_rank.value, 1);
  EXPECT_EQ(p.local_world.value, 2);
  EXPECT_EQ(p.node_rank.value, 1);
  EXPECT_EQ(p.master_host.value, "node07");
  EXPECT_EQ(p.master_host.source, "SLURM_JOB_NODELIST");
  EXPECT_EQ(p.master_port.value, 10'000 + 123'456 % 20'000);
  EXPECT_EQ(p.master_port.source, "SLURM_JOB_ID");
  EXPECT_EQ(p.run.value, "123456");
  EXPECT_EQ(p.generation.value, 1u);
  EXPECT_EQ(p.threads.value, 16);
}

TEST(Environment, RanksOfOneHostMeetOnLoopback) {
  Environment one_host = {{"RANK", "1"},
                          {"WORLD_SIZE", "2"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node7.example.org"},
                          {"MASTER_PORT", "4000"}};
  EXPECT_EQ(resolve(one_host).master(), (transport::Address{"127.0.0.1", 4000, {}}));
  EXPECT_EQ(resolve(one_host).master_host.source,
            "MASTER_ADDR (torchrun) is node7.example.org, but all ranks are on this host");
  one_host["LOCKSTEP_MASTER_ADDR"] = "node7";
  EXPECT_EQ(resolve(one_host).master_host.value, "node7") << "what the user says is taken as it is";
  const Placement slurm_job = resolve({{"SLURM_PROCID", "1"},
                                       {"SLURM_NTASKS", "2"},
                                       {"SLURM_JOB_NUM_NODES", "1"},
                                       {"SLURM_JOB_NODELIST", "node7"}});
  EXPECT_EQ(slurm_job.local_world.value, 2);
  EXPECT_EQ(slurm_job.local_world.source, "SLURM_JOB_NUM_NODES");
  EXPECT_EQ(slurm_job.master_host.value, "127.0.0.1");
}

TEST(Environment, OpenMpi) {
  const Placement p = resolve({{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                               {"PMIX_NAMESPACE", "prterun-node7-12@1"}});
  EXPECT_EQ(p.rank.value, 1);
  EXPECT_EQ(p.rank.source, "OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(p.local_world.value, 2);
  EXPECT_EQ(p.run.value, "prterun-node7-12_1");
  EXPECT_EQ(p.master_host.source, "default");
}

TEST(Environment, Pmi) {
  const Placement p = resolve({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}});
  EXPECT_EQ(p.rank.value, 2);
  EXPECT_EQ(p.rank.source, "PMI_RANK");
  EXPECT_EQ(p.world.source, "PMI_SIZE");
  EXPECT_EQ(p.local_rank.source, "MPI_LOCALRANKID");
}

TEST(Environment, EachLevelBeatsTheNext) {
  Environment environment;
  Settings config = {{"rank", "1"}, {"world", "10"}};
  EXPECT_EQ(resolve(environment, {}, config).rank.source, "rank (run.toml)");
  environment.insert({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "10"}});
  EXPECT_EQ(resolve(environment, {}, config).rank.value, 2);
  environment.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "10"}});
  EXPECT_EQ(resolve(environment, {}, config).rank.value, 3);
  environment.insert({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "10"}});
  EXPECT_EQ(resolve(environment, {}, config).rank.value, 4);
  environment.insert({{"RANK", "5"}, {"WORLD_SIZE", "10"}});
  EXPECT_EQ(resolve(environment, {}, config).rank.value, 5);
  environment.insert({"LOCKSTEP_RANK", "6"});
  EXPECT_EQ(resolve(environment, {}, config).rank.source, "LOCKSTEP_RANK");
  EXPECT_EQ(resolve(environment, {}, config).world.source, "WORLD_SIZE (torchrun)");
  EXPECT_EQ(resolve(environment, {{"rank", "7"}}, config).rank.value, 7);
  EXPECT_EQ(resolve(environment, {{"rank", "7"}}, config).rank.source, "--rank");
}

TEST(Environment, LocalRanksOfAnotherLauncherAreNotBelieved) {
  const Placement p = resolve({{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_NTASKS", "1"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "0"}});
  EXPECT_EQ(p.rank.value, 1);
  EXPECT_EQ(p.local_rank.value, std::nullopt);
  EXPECT_EQ(p.node_rank.value, std::nullopt);
}

TEST(Environment, MasterSetByHandBeatsSlurmAndSlurmBeatsConfiguration) {
  Environment environment = {{"SLURM_JOB_NODELIST", "a[1-2]"}, {"SLURM_JOB_ID", "5"}};
  const Settings config = {{"master-addr", "conf"}, {"master-port", "99"}};
  EXPECT_EQ(resolve({}, {}, config).master(), (transport::Address{"conf", 99, {}}));
  EXPECT_EQ(resolve(environment, {}, config).master(), (transport::Address{"a1", 10'005, {}}));
  environment["SLURM_STEP_NODELIST"] = "a2";
  EXPECT_EQ(resolve(environment, {}, config).master_host.value, "a2");
  environment["MASTER_ADDR"] = "[fe80::1%eth0]";
  environment["MASTER_PORT"] = "7";
  EXPECT_EQ(resolve(environment, {}, config).master(), (transport::Address{"fe80::1%eth0", 7, {}}));
  environment["LOCKSTEP_MASTER_ADDR"] = "mine";
  EXPECT_EQ(resolve(environment, {}, config).master_host.value, "mine");
  EXPECT_EQ(resolve(environment, {{"master-addr", "flag"}}, config).master_host.source, "--master-addr");
}

TEST(Environment, HostFileGivesWorldAndMaster) {
  PlacementInputs inputs;
  inputs.command_line = {{"rank", "4"}};
  inputs.hosts = {{"n1", 4}, {"n2", 2}};
  const Placement p = resolve_placement(inputs);
  EXPECT_EQ(p.world.value, 6);
  EXPECT_EQ(p.world.source, "host file");
  EXPECT_EQ(p.master_host.value, "n1");
  inputs.command_line["world"] = "5";
  EXPECT_EQ(resolve_placement(inputs).world.source, "--world");
}

TEST(Environment, OwnSettings) {
  const Placement p = resolve({{"LOCKSTEP_RENDEZVOUS_SERVER", "launcher"},
                               {"LOCKSTEP_HOST_ID", "h1"},
                               {"LOCKSTEP_RUN_ID", "run.7"},
                               {"LOCKSTEP_GENERATION", "4"},
                               {"LOCKSTEP_ADDRESS", "10.1.2.3"},
                               {"LOCKSTEP_THREADS", "2"},
                               {"OMP_NUM_THREADS", "9"},
                               {"LOCKSTEP_RENDEZVOUS_TIMEOUT", "12"}});
  EXPECT_FALSE(p.served_by_rank0.value);
  EXPECT_EQ(p.host_id.value, "h1");
  EXPECT_EQ(p.run.value, "run.7");
  EXPECT_EQ(p.generation.value, 4u);
  EXPECT_EQ(p.address.value, "10.1.2.3");
  EXPECT_EQ(p.threads.value, 2);
  EXPECT_EQ(p.timeout.value, std::chrono::seconds(12));
}

struct BadEnvironment {
  Environment environment;
  const char* message;
};

TEST(Environment, EveryErrorNamesVariableValueAndWhatIsAccepted) {
  const BadEnvironment cases[] = {
      {{{"RANK", "two"}, {"WORLD_SIZE", "4"}},
       "RANK (torchrun) is 'two': expected a whole number from 0 to 4095"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}},
       "RANK (torchrun) is '-1': expected a whole number from 0 to 4095"},
      {{{"RANK", ""}, {"WORLD_SIZE", "4"}}, "RANK (torchrun) is '': expected a whole number from 0 to 4095"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}},
       "WORLD_SIZE (torchrun) is '0': expected a whole number from 1 to 4096"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4097"}},
       "WORLD_SIZE (torchrun) is '4097': expected a whole number from 1 to 4096"},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}},
       "rank 4 from RANK (torchrun) is not below the world of 4 from WORLD_SIZE (torchrun): ranks count from "
       "0"},
      {{{"RANK", "1"}},
       "RANK (torchrun) is set but the number of processes is not: set WORLD_SIZE (as torchrun does), "
       "LOCKSTEP_WORLD_SIZE or --world"},
      {{{"LOCKSTEP_RANK", "1"}},
       "LOCKSTEP_RANK is set but the number of processes is not: set LOCKSTEP_WORLD_SIZE or --world"},
      {{{"SLURM_NTASKS", "4"}},
       "SLURM_NTASKS is 4 but the rank of this process is not set: set SLURM_PROCID (as Slurm does), "
       "LOCKSTEP_RANK or --rank"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
       "local rank 2 from LOCAL_RANK (torchrun) is not below the local world of 2 from LOCAL_WORLD_SIZE "
       "(torchrun)"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}},
       "local world 3 from LOCAL_WORLD_SIZE (torchrun) exceeds the world of 2 from WORLD_SIZE (torchrun)"},
      {{{"MASTER_PORT", "0"}}, "MASTER_PORT (torchrun) is '0': expected a whole number from 1 to 65535"},
      {{{"MASTER_PORT", "65536"}},
       "MASTER_PORT (torchrun) is '65536': expected a whole number from 1 to 65535"},
      {{{"MASTER_ADDR", "node:29500/x"}},
       "MASTER_ADDR (torchrun) is 'node:29500/x': expected a host name or an address, without a port"},
      {{{"MASTER_ADDR", ""}},
       "MASTER_ADDR (torchrun) is '': expected a host name or an address, without a port"},
      {{{"SLURM_JOB_NODELIST", "a[1-"}},
       "SLURM_JOB_NODELIST: node list 'a[1-' at character 5: expected a number"},
      {{{"SLURM_JOB_ID", "x"}}, "SLURM_JOB_ID is 'x': expected a whole number from 0 to 4294967295"},
      {{{"LOCKSTEP_RUN_ID", "a b"}},
       "LOCKSTEP_RUN_ID is 'a b': expected 1 to 64 letters, digits, '.', '_' or '-'"},
      {{{"LOCKSTEP_HOST_ID", ""}},
       "LOCKSTEP_HOST_ID is '': expected 1 to 128 letters, digits, '.', '_', ':' or '-'"},
      {{{"LOCKSTEP_RENDEZVOUS_SERVER", "me"}},
       "LOCKSTEP_RENDEZVOUS_SERVER is 'me': expected 'rank0' or 'launcher'"},
      {{{"OMP_NUM_THREADS", "0"}}, "OMP_NUM_THREADS is '0': expected a whole number from 1 to 4096"},
      {{{"LOCKSTEP_RENDEZVOUS_TIMEOUT", "1.5"}},
       "LOCKSTEP_RENDEZVOUS_TIMEOUT is '1.5': expected a whole number from 1 to 604800"},
  };
  for (const BadEnvironment& bad : cases) EXPECT_EQ(error_of(bad.environment), bad.message);
}

TEST(Environment, AWorldOfOneNeedsNoRank) {
  EXPECT_EQ(resolve({{"WORLD_SIZE", "1"}}).rank.value, 0);
}

TEST(Environment, UnknownSettingsAreNamed) {
  EXPECT_EQ(error_of({}, {}, {{"rnak", "1"}}), "run.toml: unknown placement setting 'rnak'");
}

// As in the shell of an allocation.
TEST(Environment, ThreadsAreKnownWithoutAPlace) {
  PlacementInputs inputs;
  inputs.environment = {{"SLURM_NTASKS", "4"}};
  EXPECT_THROW(resolve_placement(inputs), UsageError);
  EXPECT_EQ(resolve_threads(inputs), 0);
  inputs.environment["SLURM_CPUS_PER_TASK"] = "3";
  EXPECT_EQ(resolve_threads(inputs), 3);
}

TEST(Environment, ReadsTheProcess) {
  ASSERT_EQ(setenv("LOCKSTEP_ENVIRONMENT_TEST", "a=b", 1), 0);
  EXPECT_EQ(process_environment()["LOCKSTEP_ENVIRONMENT_TEST"], "a=b");
  unsetenv("LOCKSTEP_ENVIRONMENT_TEST");
}

}  // namespace
}  // namespace lockstep::rendezvous
