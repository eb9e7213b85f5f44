// The subcommands. Each parses its arguments, calls the layers below, and returns what to print: it
// writes nothing itself, so that an error leaves nothing half-written.
#pragma once

#include <string>
#include <vector>

#include "cli/app.h"

namespace fuseline {

using Arguments = std::vector<std::string>;  // without program and subcommand

struct CommandResult {
  std::string output;    // for standard output
  std::string messages;  // for standard error
  ExitStatus status = ExitStatus::done;
};

// All throw InputError, MissingError and InternalError.
CommandResult predict_command(const Arguments& args);
CommandResult gemm_command(const Arguments& args);
CommandResult explain_command(const Arguments& args);
CommandResult verify_command(const Arguments& args);
CommandResult program_command(const Arguments& args);
CommandResult export_command(const Arguments& args);
CommandResult train_command(const Arguments& args);
// Also MissingError without a GPU or driver, and where memory is short.
CommandResult measure_command(const Arguments& args);
CommandResult compare_command(const Arguments& args);
CommandResult verdict_command(const Arguments& args);
CommandResult search_command(const Arguments& args);
CommandResult limits_command(const Arguments& args);
CommandResult judge_command(const Arguments& args);
CommandResult diff_command(const Arguments& args);
CommandResult import_command(const Arguments& args);
CommandResult import_graph_command(const Arguments& args);
CommandResult import_trace_command(const Arguments& args);
CommandResult calibrate_command(const Arguments& args);
CommandResult sweep_command(const Arguments& args);
CommandResult report_command(const Arguments& args);
CommandResult audit_command(const Arguments& args);
CommandResult list_command(const Arguments& args);
CommandResult lab_command(const Arguments& args);
CommandResult course_command(const Arguments& args);
// Returns when the window is closed. MissingError when it was not built.
CommandResult gui_command(const Arguments& args);

}  // namespace fuseline
