// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/doctor_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/cli/version.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/rendezvous/settings.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

template <typename T, typename Format>
std::string or_none(const std::optional<T>& value, Format format) {
  return value ? format(*value) : "none";
}

std::string links_text(const LinkModelCheck& links) {
  if (!links.problem.empty()) return "cannot be used, see below";
  return links.file.empty() ? "built in" : fmt::format("from the file {} (LOCKSTEP_LINK_MODEL)", links.file);
}

std::string secret_text(const SecretCheck& secret) {
  if (!secret.problem.empty()) return "cannot be used, see below";
  switch (secret.origin) {
    case SecretCheck::Origin::none:
      return "none (enough on one host)";
    case SecretCheck::Origin::value:
      return "from LOCKSTEP_SECRET";
    case SecretCheck::Origin::file:
      return fmt::format("from the file {}, private to its owner", secret.file);
  }
  return "";
}

class Text {
 public:
  void section(std::string_view name) { text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", name); }
  void line(std::string_view name, std::string_view value, std::string_view note = "") {
    text_ += note.empty() ? fmt::format("  {:<20} {}\n", name, value)
                          : fmt::format("  {:<20} {:<32} {}\n", name, value, note);
  }
  void sentence(std::string_view text) { text_ += fmt::format("  - {}\n", text); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_system(Text& text, const SystemFacts& system) {
  text.section("host");
  text.line("name", system.host_name);
  text.line("kernel", system.kernel);
  text.line("simd", system.simd);
  text.line(
      "cores",
      fmt::format("{} online, {} usable by this process, quota {}", system.cores_online, system.cores_usable,
                  or_none(system.cores_quota, [](double cores) { return fmt::format("{:.1f}", cores); })));
  text.line("memory", fmt::format("{}, {} available, limit {}", mebibytes(system.memory_bytes),
                                  mebibytes(system.memory_available_bytes),
                                  or_none(system.memory_limit_bytes, mebibytes)));
  text.line("pages",
            fmt::format("{} bytes; huge pages for shared memory: {}", system.page_bytes,
                        system.huge_pages_for_shared_memory.empty() ? "unknown"
                                                                    : system.huge_pages_for_shared_memory));
  text.line("/dev/shm", or_none(system.dev_shm_free_bytes, mebibytes) + " free");
  text.line("open files",
            fmt::format("limit {}, at most {}", system.open_files_limit, system.open_files_hard_limit));
}

void write_peers(Text& text, const rendezvous::PeerTable& peers) {
  text.section(fmt::format("all {} ranks have met", peers.world()));
  for (const rendezvous::Peer& peer : peers.peers) {
    text.line(fmt::format("rank {}", peer.rank), fmt::format("{}, pid {}", peer.host_name, peer.pid),
              peer.host_id);
  }
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json placement_json(const rendezvous::Placement& p) {
  using namespace rendezvous;
  Json json = Json::object();
  const auto add = [&](const Field& field, Json value, const std::string& source) {
    json[std::string(field.setting)] = {{"value", std::move(value)}, {"source", source}};
  };
  add(kRank, p.rank.value, p.rank.source);
  add(kWorld, p.world.value, p.world.source);
  add(kLocalRank, or_null(p.local_rank.value), p.local_rank.source);
  add(kLocalWorld, or_null(p.local_world.value), p.local_world.source);
  add(kNodeRank, or_null(p.node_rank.value), p.node_rank.source);
  add(kMasterHost, p.master_host.value, p.master_host.source);
  add(kMasterPort, p.master_port.value, p.master_port.source);
  add(kServer, p.served_by_rank0.value ? "rank0" : "launcher", p.served_by_rank0.source);
  add(kRun, p.run.value, p.run.source);
  add(kGeneration, p.generation.value, p.generation.source);
  add(kHostId, p.host_id.value, p.host_id.source);
  add(kAddress, p.address.value.empty() ? Json(nullptr) : Json(p.address.value), p.address.source);
  add(kThreads, p.threads.value == 0 ? Json(nullptr) : Json(p.threads.value), p.threads.source);
  add(kTimeout, p.timeout.value.count(), p.timeout.source);
  return json;
}

Json system_json(const SystemFacts& system) {
  return {{"name", system.host_name},
          {"kernel", system.kernel},
          {"simd", system.simd},
          {"cores_online", system.cores_online},
          {"cores_usable", system.cores_usable},
          {"cores_quota", or_null(system.cores_quota)},
          {"memory_bytes", system.memory_bytes},
          {"memory_available_bytes", system.memory_available_bytes},
          {"memory_limit_bytes", or_null(system.memory_limit_bytes)},
          {"page_bytes", system.page_bytes},
          {"huge_pages_for_shared_memory", system.huge_pages_for_shared_memory},
          {"dev_shm_free_bytes", or_null(system.dev_shm_free_bytes)},
          {"open_files_limit", system.open_files_limit},
          {"open_files_hard_limit", system.open_files_hard_limit}};
}

Json peers_json(const rendezvous::PeerTable& table) {
  Json peers = Json::array();
  for (const rendezvous::Peer& peer : table.peers) {
    peers.push_back(
        {{"rank", peer.rank}, {"host_name", peer.host_name}, {"host_id", peer.host_id}, {"pid", peer.pid}});
  }
  return peers;
}

const char* origin_name(SecretCheck::Origin origin) {
  switch (origin) {
    case SecretCheck::Origin::none:
      return "none";
    case SecretCheck::Origin::value:
      return "LOCKSTEP_SECRET";
    case SecretCheck::Origin::file:
      return "LOCKSTEP_SECRET_FILE";
  }
  return "";
}

}  // namespace

std::string report_text(const Examination& examination, const Diagnosis& diagnosis,
                        const std::optional<rendezvous::PeerTable>& peers) {
  Text text;
  text.section(fmt::format("lockstep {}", rendezvous::version()));
  if (examination.placement) {
    text.section("placement");
    for (const auto& [name, value, source] : describe(*examination.placement)) text.line(name, value, source);
  }
  write_system(text, examination.system);
  text.section("transports");
  for (const TransportCheck& transport : examination.transports) {
    text.line(transport.name, transport.available ? "yes" : "no", transport.detail);
  }
  text.line("link model", links_text(examination.links));
  text.section("security");
  text.line("secret", secret_text(examination.secret));
  text.line("tls", examination.secret.tls ? "certificates are set" : "off");
  if (peers) write_peers(text, *peers);
  text.section(diagnosis.problems.empty() ? "all is well" : "wrong");
  for (const std::string& problem : diagnosis.problems) text.sentence(problem);
  if (!diagnosis.advice.empty()) text.section("could be better");
  for (const std::string& advice : diagnosis.advice) text.sentence(advice);
  return text.take();
}

std::string report_json(const Examination& examination, const Diagnosis& diagnosis,
                        const std::optional<rendezvous::PeerTable>& peers) {
  Json report = {{"version", rendezvous::version()}};
  report["placement"] = nullptr;
  if (examination.placement) report["placement"] = placement_json(*examination.placement);
  report["host"] = system_json(examination.system);
  for (const TransportCheck& transport : examination.transports) {
    report["transports"][transport.name] = {{"available", transport.available}, {"detail", transport.detail}};
  }
  report["link_model"] = {{"file", examination.links.file}, {"usable", examination.links.problem.empty()}};
  report["security"] = {{"secret", origin_name(examination.secret.origin)},
                        {"usable", examination.secret.problem.empty()},
                        {"tls", examination.secret.tls}};
  if (peers) report["peers"] = peers_json(*peers);
  report["problems"] = diagnosis.problems;
  report["advice"] = diagnosis.advice;
  // A host name or path may hold any bytes; they must not break the report.
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
