// The rivals of a measurement, from their start to their last burst. What goes wrong with them
// becomes a note: our own blocks are measured all the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cuda/run/rival.h"
#include "model/config/config.h"

namespace fuseline::cuda {

// What a rival can run: "eager", "composed" and "torch-compile".
const std::vector<std::string>& rival_executions();

// The file in cuda/rivals that has this model's block, or would if it had any.
std::string rival_script(const ModelConfig& config);

// Why a rival cannot run what our plans do, in words; empty when it can.
std::string rival_refusal(const ModelConfig& config, const Workload& workload);

// The arguments that choose these blocks, one for each execution in their order.
std::string rival_arguments(const ModelConfig& config, const Workload& workload,
                            const std::vector<std::string>& executions);

class RivalTurns {
 public:
  RivalTurns() = default;

  // Starts them, which takes no time here. `command`: a line for the shell, arguments are put
  // behind it. Cancelled, here and below: `stop` is set.
  void start(const std::string& command, const ModelConfig& config, const Workload& workload,
             const std::vector<std::string>& executions, const std::atomic<bool>* stop,
             RivalLimits limits = {});
  // Waits until they can be timed.
  void get_ready();
  // Executions that take turns; none after a rival was lost.
  [[nodiscard]] const std::vector<std::string>& ready() const { return ready_; }
  // Times of a block in one burst of ready()[i]; nothing when the rivals are lost.
  std::optional<std::vector<Seconds>> burst(std::size_t i, int warm_ups, int replays);
  // Leaves the GPU. What was ready stays so.
  void end() { process_.reset(); }

  [[nodiscard]] const std::string& framework() const { return framework_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void leave_out(const std::string& why);

  std::unique_ptr<RivalProcess> process_;
  std::vector<std::string> wanted_, ready_, notes_;
  std::vector<std::size_t> places_;  // of those that are ready among the wanted
  std::string framework_;
};

}  // namespace fuseline::cuda
