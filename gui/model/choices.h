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
// The blocks that the setup's model may have: its own (value: empty), its kinds of layers where it
// has several, the shipped ones, and the file that is chosen now.
std::vector<Choice> block_choices(const Setup& setup);
// Number formats, that of the workload's type first; those that the setup's GPU, model or phase
// cannot have are there, disabled, with the reason. Each tries a block: some milliseconds.
enum class FormatOf : std::uint8_t { weights, activations, cache };
std::vector<Choice> format_choices(const Setup& setup, FormatOf of);
// The setup with the format that a choice's value names. InputError: it cannot have it.
Setup with_format(Setup setup, FormatOf of, const std::string& value);
// The value of the format that the setup has, and the format's name.
std::string format_value(const Setup& setup, FormatOf of);
std::string format_text(const Workload& workload, FormatOf of);
// `custom` last. Policies without a plan for the phase are there, disabled, with the reason.
std::vector<Choice> policy_choices(Phase phase);

// Runs that the measurements hold of the setup's block, one for each execution, not only policies.
std::vector<Run> measured_runs(const Measurements& measurements, const Setup& setup);

// Why none of them fits, where measured_runs() is empty: another GPU, model, phase or size, each by
// name with the setup's own, and what to do.
std::string why_no_run_fits(const Measurements& measurements, const Setup& setup);

// What a file or folder is by its contents. InputError: unreadable, or nothing that fits.
enum class FileKind : std::uint8_t { session, model, block, plan, gpu, measurements, trace };
FileKind kind_of_file(const std::filesystem::path& path);

}  // namespace fuseline::gui
