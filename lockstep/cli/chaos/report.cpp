// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/report.h"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/counted.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

std::map<FaultKind, int> counts_of(const JobFigures& job) {
  std::map<FaultKind, int> counts;
  for (const InjectedFault& injected : job.faults) ++counts[injected.fault.kind];
  return counts;
}

// "20 kill, 3 resize"
std::string faults_in_words(const JobFigures& job) {
  std::vector<std::string> words;
  for (const auto& [kind, count] : counts_of(job))
    words.push_back(fmt::format("{} {}", count, name_of(kind)));
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string spread_in_words(const std::optional<Spread>& spread) {
  if (!spread) return "never";
  return fmt::format("median {:.3f} s, at most {:.3f} s", spread->median, spread->max);
}

std::string recovery_in_words(const JobFigures& job) {
  std::string words = spread_in_words(spread_over(job.outcomes, &FaultOutcome::recovered_s));
  if (counts_of(job).size() < 2) return words;
  for (const auto& [kind, count] : counts_of(job)) {
    const auto spread = spread_over(job.outcomes, &FaultOutcome::recovered_s, kind);
    if (spread) words += fmt::format("; {}: median {:.3f} s", name_of(kind), spread->median);
  }
  return words;
}

std::string row(std::string_view name, const std::string& text) {
  return fmt::format("{:<24} {}\n", name, text);
}

std::string effective_in_words(const Effective& effective) {
  return fmt::format("{:.1f} % of {:.1f} s", effective.share * 100, effective.window_s);
}

std::string losses_in_words(const LossComparison& losses) {
  if (losses.different == 0) return fmt::format("equal in all {} steps", losses.steps);
  return fmt::format("DIFFERENT in {} of {} steps, the first of them {}", losses.different, losses.steps,
                     *losses.first_different);
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median}, {"min", spread->min}, {"max", spread->max}};
}

Json time_json(const std::optional<double>& time) {
  return time ? Json(*time) : Json(nullptr);
}

Json job_json(const JobFigures& job) {
  Json object;
  Json& injected = object["injected"] = Json::object();
  for (const auto& [kind, count] : counts_of(job)) injected[std::string(name_of(kind))] = count;
  object["noticed_s"] = spread_json(spread_over(job.outcomes, &FaultOutcome::noticed_s));
  object["recovered_s"] = spread_json(spread_over(job.outcomes, &FaultOutcome::recovered_s));
  object["recovered_from_kill_s"] =
      spread_json(spread_over(job.outcomes, &FaultOutcome::recovered_s, FaultKind::kill));
  object["steps_repeated"] = job.repeats.total;
  object["steps_repeated_most"] = job.repeats.most;
  object["effective_training_time"] = job.effective.share;
  object["window_s"] = job.effective.window_s;
  object["steps_in_window"] = job.effective.steps;
  Json& faults = object["faults"] = Json::array();
  for (std::size_t i = 0; i < job.faults.size(); ++i) {
    const Fault& fault = job.faults[i].fault;
    Json one = {{"at_s", fault.at_s},
                {"time", job.faults[i].time_s},
                {"kind", name_of(fault.kind)},
                {"worker", fault.worker},
                {"step", job.faults[i].step},
                {"noticed_s", time_json(job.outcomes[i].noticed_s)},
                {"recovered_s", time_json(job.outcomes[i].recovered_s)}};
    if (fault.stopped_for_s > 0) one["stopped_for_s"] = fault.stopped_for_s;
    faults.push_back(std::move(one));
  }
  return object;
}

}  // namespace

std::string chaos_text(const ChaosReport& report) {
  const JobFigures& ours = report.ours;
  const std::string missing =
      ours.faults.size() < report.planned
          ? fmt::format("; the run was over before {} more", report.planned - ours.faults.size())
          : "";
  std::string text =
      row("job", fmt::format("{}, {}, {:.1f} ms for each undisturbed; files in {}",
                             counted(report.workers, "worker"), counted(report.steps, "step"),
                             report.undisturbed_step_s * 1e3, report.folder)) +
      row("faults", fmt::format("{} (seed {}){}", faults_in_words(ours), report.seed, missing)) +
      row("noticed after", spread_in_words(spread_over(ours.outcomes, &FaultOutcome::noticed_s))) +
      row("next step decided after", recovery_in_words(ours)) +
      row("steps repeated",
          fmt::format("{}, at most {} after one loss", ours.repeats.total, ours.repeats.most)) +
      row("effective training time", effective_in_words(ours.effective)) +
      row("pace", fmt::format("{:.1f} % of the undisturbed run's", report.pace * 100)) +
      row("losses", losses_in_words(report.losses)) +
      row("final digest", report.has_equal_digest() ? fmt::format("equal: {}", report.digest)
                                                    : fmt::format("DIFFERENT: {}, undisturbed {}",
                                                                  report.digest, report.undisturbed_digest));
  if (report.torchrun) {
    const JobFigures& torchrun = *report.torchrun;
    text +=
        row("torchrun", fmt::format("{}; effective training time {}; next step after {}; {} steps repeated",
                                    faults_in_words(torchrun), effective_in_words(torchrun.effective),
                                    recovery_in_words(torchrun), torchrun.repeats.total));
  }
  return text;
}

std::string chaos_json(const ChaosReport& report) {
  Json object = {{"folder", report.folder}, {"workers", report.workers},
                 {"steps", report.steps},   {"undisturbed_step_s", report.undisturbed_step_s},
                 {"seed", report.seed},     {"planned", report.planned}};
  object.update(job_json(report.ours));
  object["pace"] = report.pace;
  object["losses_compared"] = report.losses.steps;
  object["losses_different"] = report.losses.different;
  object["first_different_loss"] =
      report.losses.first_different ? Json(*report.losses.first_different) : Json(nullptr);
  object["digest"] = report.digest;
  object["undisturbed_digest"] = report.undisturbed_digest;
  object["equal"] = report.is_equal();
  if (report.torchrun) object["torchrun"] = job_json(*report.torchrun);
  return object.dump() + "\n";
}

}  // namespace lockstep::cli
