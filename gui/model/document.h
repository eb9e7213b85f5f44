// The document of a session: everything that undo brings back and that a file keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gui/model/run.h"

namespace fuseline::gui {

struct Document {
  std::string title;
  Setup setup;
  std::optional<std::int64_t> layers = 1;  // blocks in a row; empty: the whole model
  std::string measurements;                // where measured runs are looked for first; may be empty
  RunList runs;
  // The block's text where it is wrong: predictions are of the setup, whose text was right.
  std::string draft;

  friend bool operator==(const Document&, const Document&) = default;
};

// The run's own setup, or the document's. A measurement is of the machine as it is: "what if" does
// not reach it.
Setup setup_of(const Document& document, const Run& run);

// LLaMA-2-7B on the H200 as scenarios/llama2-7b-h200.toml has it: eager, torch-compile and coda,
// predicted, and measured where the shipped measurements have them. Baseline: eager.
Document default_document();

// The policies of its predictions.
const std::vector<std::string>& default_policies();

// A run for each of the policies, predicted, each followed by its measurement when `measurements`
// (a folder or file, may be empty) holds the setup's case. InputError: the setup or the
// measurements cannot be read.
RunList runs_for(const Setup& setup, const std::vector<std::string>& policies,
                 const CustomFusion& custom, const std::string& measurements);

}  // namespace fuseline::gui
