// What the controls offer, and what a dropped file is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "sim/measured/measurement.h"

namespace fuseline::gui {

struct Choice {
  std::string value;    // what goes into the setup
  std::string text;     // "LLaMA-2-7B"
  std::string tooltip;  // dimensions, or what a policy fuses
  bool enabled = true;
  std::string why_not;
};

std::vector<Choice> model_choices();
std::vector<Choice> gpu_choices();
// `custom` last. Policies without a plan for the phase are there, disabled, with the reason.
std::vector<Choice> policy_choices(Phase phase);

// Runs that the measurements hold of the setup's block, one for each execution, not only policies.
std::vector<Run> measured_runs(const Measurements& measurements, const Setup& setup);

// What a file or folder is by its contents. InputError: unreadable, or nothing that fits.
enum class FileKind : std::uint8_t { session, model, gpu, measurements };
FileKind kind_of_file(const std::filesystem::path& path);

}  // namespace fuseline::gui
