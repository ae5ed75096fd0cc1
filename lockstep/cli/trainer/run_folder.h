// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/file_lock.h"
#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"
#include "lockstep/cli/trainer/made_folder.h"
#include "lockstep/cli/trainer/run_log.h"
#include "lockstep/metrics/sink.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/run.h"

namespace lockstep::cli {

// What rank 0 leaves behind and shows of a run: the folder with the resolved configuration, the metrics, the
// log and the trained model, and a line of progress for each step.
class RunFolder {
 public:
  // Makes the folder if need be, and keeps other runs out of it. `goes_on`: other workers have begun the run,
  // and left what is there. InUseError when another run writes there; UsageError as require_free(), when it
  // cannot be written, or when the run's tokenizer cannot be read, has not made all of its corpora, or is not
  // that of the model that a new run begins with, or has more tokens: better before the training than after
  // it.
  RunFolder(const spec::RunSpec& run, int workers, bool goes_on);

  std::string tokenizer_digest() const;  // empty: the run has none
  // As RunLog::lost_output().
  std::optional<std::string> lost_output() const { return log_ ? log_->lost_output() : std::nullopt; }

  // What the run's workers are.
  struct Workers {
    double gemm_peak_gflops = 0;    // of all of them together, which they are measured against
    int on_this_host = 1;           // so many
    std::vector<int> host_of = {};  // as plan::step_memory() takes it
    bool mirror = false;            // each other's shares of the state: those of an elastic run
  };
  // Makes room for the run, once nothing is in its way any more, and says what it will need. UsageError when
  // this host has far too little memory for a new run.
  void begin(const Workers& workers);
  // Whether the checkpoint is one of this folder, which has no record of its step, or none with the
  // validation loss that it should have.
  bool lacks(const train::Resumed& from, bool has_validation) const;
  // After begin(), when the run is not a new one: it goes on from a checkpoint, or from what workers had in
  // memory, whose last step will be told again where it is known.
  void resumed(const train::Resumed& from);
  void healed(const train::Reached& from);
  // Before the next step.
  void begun(std::int64_t step);
  void after_step(const train::StepReport& report);
  void saved(const train::SaveReport& report);
  // Writes the folder model/, in the dtype that was trained in, from memory or from a checkpoint.
  void save(const model::FlatLayout& whole, const at::Tensor& values);
  void save(const std::string& checkpoint);
  void finish(const train::RunSummary& summary);

 private:
  // Bytes that are predicted.
  struct Needs {
    std::uint64_t largest = 0;  // of any worker
    std::uint64_t on_this_host = 0;
  };
  Needs predict(const Workers& workers);
  // What others have said of it, for when the run goes on without them.
  void keep_tokenizer();
  void warn_about_arithmetic(const train::Resumed& from);
  // With the records up to this step.
  void open_sinks(std::int64_t step);
  std::string model_folder() const;
  void tell_model();
  double mfu(const train::StepReport& report) const;
  void show(const train::StepReport& report);
  void warn_about_memory(int local_workers, std::uint64_t needed);
  void warn_about_disk();

  const spec::RunSpec& run_;
  int workers_;
  MadeFolder folder_;
  FileLock lock_;
  bool goes_on_;  // with what is in this folder
  double gemm_peak_gflops_ = 0;
  std::uint64_t predicted_bytes_ = 0;  // the most that this process will need
  std::int64_t page_faults_ = 0;       // of this process, until the last step
  checkpoint::FolderTokenizer tokenizer_;
  std::vector<std::unique_ptr<metrics::MetricsSink>> sinks_;
  std::optional<RunLog> log_;                     // since begin()
  std::vector<metrics::Scalar> since_last_step_;  // to be recorded with the next one
  double seconds_ = 0;                            // of the steps so far
  std::int64_t timed_steps_ = 0;                  // the first one, which also makes ready, is not among them
};

}  // namespace lockstep::cli
