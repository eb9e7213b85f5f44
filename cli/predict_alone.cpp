// The program fuseline-predict has one command. ./run.sh builds it for a first prediction, and
// builds the whole program when another command is asked for.
#include <array>

#include "cli/command_table.h"

namespace fuseline {

namespace {

constexpr std::array<Command, 1> kCommands = {{{"predict", kPredictSummary, predict_command}}};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace fuseline
