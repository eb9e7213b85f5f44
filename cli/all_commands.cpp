#include <array>

#include "cli/command_table.h"

namespace fuseline {

namespace {

constexpr std::array<Command, 23> kCommands = {{
    {"predict", kPredictSummary, predict_command},
    {"gemm", "one library GEMM", gemm_command},
    {"explain", "a plan's kernels, their programs, and why operators are fused or not",
     explain_command},
    {"verify", "executes plans on the CPU: errors against fp64, bytes against the prediction",
     verify_command},
    {"program", "programs as text: check, explain, predict, verify, measure, export",
     program_command},
    {"train", "trains a small model through plans and in fp64: do the losses agree", train_command},
    {"verdict", "fuse or not, per edge and policy: gain, band, break-even size, what limits it",
     verdict_command},
    {"search", "the best plan for an objective, its gap to the bound, the decisions that mattered",
     search_command},
    {"limits", "what a block's kernels move at least, and curves over the size of a memory",
     limits_command},
    {"compare", "predictions beside measurements: errors, bias, worst cases", compare_command},
    {"judge", "predictions beside figures that others published", judge_command},
    {"diff", "what differs between two predictions; --fail-if slower=3%", diff_command},
    {"import",
     "a profiler's trace beside a plan; a measurement of a CSV; a block of a PyTorch graph",
     import_command},
    {"calibrate", "fits the constants of the hierarchy model to measurements", calibrate_command},
    {"sweep", "a grid of predictions as CSV or JSON", sweep_command},
    {"report", "one HTML file: tables, charts, plans, and the commands that give the numbers",
     report_command},
    {"audit", "published claims against predictions, limits and measurements", audit_command},
    {"list", "models, gpus, architectures, memory, policies, scenarios, operators", list_command},
    {"measure", "runs plans on the GPU of this machine: checked, timed, counted", measure_command},
    {"export", "kernels and launchers of a block's plan, for other programs", export_command},
    {"lab", "exercises with checks", lab_command},
    {"course", "a lecturer's side of the labs: students, deadlines, a gradebook", course_command},
    {"gui", "the window: try fusion choices, see predicted beside measured", gui_command},
}};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace fuseline
