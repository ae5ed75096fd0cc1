// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A healthy machine with a process that is alone.
Examination healthy() {
  Examination result;
  result.placement = rendezvous::Placement{};
  result.system.cores_online = result.system.cores_usable = 8;
  result.system.open_files_limit = result.system.open_files_hard_limit = 1024;
  result.system.huge_pages_for_shared_memory = "advise";
  result.transports = {{"shm", true, ""}, {"tcp", true, ""}, {"mpi", false, "not built in"}};
  return result;
}

Examination of_world(int world, std::optional<int> local_world, const char* master) {
  Examination result = healthy();
  result.placement->world.value = world;
  result.placement->local_world.value = local_world;
  result.placement->master_host.value = master;
  return result;
}

TEST(Diagnosis, AllIsWell) {
  EXPECT_THAT(diagnose(healthy()).problems, IsEmpty());
  EXPECT_THAT(diagnose(healthy()).advice, IsEmpty());
  EXPECT_THAT(diagnose(of_world(4, 4, "127.0.0.1")).problems, IsEmpty());
}

TEST(Diagnosis, RepeatsWhatTheEnvironmentAndTheSecretSaid) {
  Examination bad = healthy();
  bad.placement.reset();
  bad.placement_problem = "RANK is 'x'";
  bad.secret.problem = "chmod 600";
  bad.links.problem = "no such file";
  EXPECT_THAT(diagnose(bad).problems, ElementsAre("RANK is 'x'", "chmod 600", "no such file"));
}

TEST(Diagnosis, AVariableThatNothingReadsIsNoProblem) {
  Examination mistyped = healthy();
  mistyped.unread_variables = {"LOCKSTEP_RENK is set"};
  EXPECT_THAT(diagnose(mistyped).problems, IsEmpty());
  EXPECT_THAT(diagnose(mistyped).advice, ElementsAre("LOCKSTEP_RENK is set"));
}

TEST(Diagnosis, OtherHostsNeedASecretOrTls) {
  Examination open = of_world(4, 2, "node1");
  EXPECT_THAT(diagnose(open).problems,
              ElementsAre(HasSubstr("without a secret: make one with `lockstep keygen")));
  open.secret.tls = true;
  EXPECT_THAT(diagnose(open).problems, IsEmpty());
  open.secret = {SecretCheck::Origin::file, "/f", "", false};
  EXPECT_THAT(diagnose(open).problems, IsEmpty());
}

TEST(Diagnosis, OtherHostsCannotReachLoopback) {
  EXPECT_THAT(diagnose(of_world(4, 2, "127.0.0.1")).problems, ElementsAre(HasSubstr("set MASTER_ADDR")));
  Examination met = of_world(4, 2, "127.0.0.1");
  met.met = true;
  EXPECT_THAT(diagnose(met).problems, IsEmpty()) << "they have met, so they can";
}

TEST(Diagnosis, BrokenTransportsAreProblemsButMissingMpiIsNot) {
  Examination bad = healthy();
  bad.transports[0] = {"shm", false, "no memory files"};
  EXPECT_THAT(diagnose(bad).problems, ElementsAre("the shm transport does not work: no memory files"));
}

TEST(Diagnosis, RepeatsWhyItCannotListen) {
  Examination taken = of_world(2, 2, "127.0.0.1");
  taken.serving_problem = "port 29500 is in use";
  EXPECT_THAT(diagnose(taken).problems, ElementsAre("port 29500 is in use"));
}

TEST(Diagnosis, WhatMpiLacksIsAProblemOnlyUnderMpi) {
  Examination small = healthy();
  small.mpi_lack = "Open MPI needs more";
  EXPECT_THAT(diagnose(small).problems, IsEmpty());
  EXPECT_THAT(diagnose(small).advice,
              ElementsAre("only where MPI carries the connections: Open MPI needs more"));
  small.under_mpi = true;
  EXPECT_THAT(diagnose(small).problems, ElementsAre("Open MPI needs more"));
  EXPECT_THAT(diagnose(small).advice, IsEmpty());
}

TEST(Diagnosis, LargeWorldsNeedOpenFiles) {
  Examination large = of_world(1000, 8, "node1");
  large.secret.origin = SecretCheck::Origin::value;
  EXPECT_THAT(diagnose(large).problems,
              ElementsAre(AllOf(HasSubstr("a world of 1000 needs about 4024 open files"),
                                HasSubstr("it cannot be raised above 1024 here"))));
  large.system.open_files_hard_limit = 1 << 20;
  EXPECT_THAT(diagnose(large).problems, ElementsAre(HasSubstr("raise it with `ulimit -n 4024`")));
}

TEST(Diagnosis, AdvisesOnCoresAndPages) {
  Examination slow = of_world(9, 9, "127.0.0.1");
  slow.system.cores_quota = 1.5;
  slow.system.huge_pages_for_shared_memory = "never";
  const Diagnosis found = diagnose(slow);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.advice, ElementsAre(HasSubstr("9 ranks share the 8 cores"),
                                        HasSubstr("allows 1.5 of 8 cores"), HasSubstr("huge pages are off")));
}

}  // namespace
}  // namespace lockstep::cli
