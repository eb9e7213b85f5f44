// The commands of the program, in the order in which its help names them.
#pragma once

#include <span>
#include <string_view>

#include "cli/commands.h"

namespace fuseline {

struct Command {
  std::string_view name;
  std::string_view summary;
  CommandResult (*run)(const Arguments&);
};

// Each program has a file of its own with this function: fuseline all_commands.cpp, and
// fuseline-predict predict_alone.cpp.
std::span<const Command> all_commands();

// Both programs say the same of it.
inline constexpr std::string_view kPredictSummary =
    "time and traffic of one block under each fusion policy";

}  // namespace fuseline
