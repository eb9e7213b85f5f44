// What every import that writes a measurement folder asks for: of which block, from where, and into
// which folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/selection.h"
#include "sim/measured/measurement.h"
#include "sim/measured/measurement_write.h"

namespace fuseline {

struct MeasuredTexts {
  std::optional<std::string> title, device, driver, toolkit, framework, date, clocks, command;
  std::optional<std::string> output;
  bool extend = false, replace = false;

  // Adds --title, --device, --driver, --toolkit, --framework, --date, --clocks, --command.
  void add_to(Options& options);
  // Adds --output, --extend, --replace.
  void add_folder_to(Options& options);

  // What was said takes the place of what the file says; what nobody said is a note.
  void take(MeasurementMeta& meta, std::vector<std::string>& notes) const;
  // InputError: --extend and --replace together.
  [[nodiscard]] ExistingFolder existing() const;
};

// InputError unless model, GPU, phase and sizes were said: they are not assumed.
void check_profiled_block(const SelectionTexts& block);
const std::string& required_option(const char* option, const std::optional<std::string>& text,
                                   const char* allowed);

}  // namespace fuseline
