// fuseline import trace: a profiler's trace beside a plan, kernel by kernel.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/import_options.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/table.h"
#include "sim/traces/traced_block.h"

namespace fuseline {

namespace {

std::string off_by(Seconds predicted, Seconds measured) {
  return measured > Seconds(0) ? signed_percent(predicted / measured - 1) : "-";
}

std::string hbm_of(const std::optional<LaunchCounters>& counters) {
  return counters ? megabytes(counters->hbm_read + counters->hbm_write) : "-";
}

// What most of a kernel's launches were matched by; a further launch says nothing of its own.
std::string matched_by(const MatchedTrace& trace, std::size_t kernel) {
  for (const MatchedLaunch& l : trace.launches)
    if (l.kernel == kernel && l.by != MatchedBy::part) return name_of(l.by);
  return "-";
}

std::string planned_kernels_table(const TracedBlock& traced) {
  const MatchedTrace& t = traced.trace;
  const bool counted = !t.tensors.empty();
  std::vector<Column> columns = {{"kernel of the plan", Align::left},
                                 {"kind", Align::left},
                                 {"predicted µs"},
                                 {"measured"},
                                 {"error"},
                                 {"launches"},
                                 {"matched by", Align::left}};
  if (counted) columns.insert(columns.end(), {{"HBM MB"}, {"measured"}});
  std::vector<std::vector<std::string>> rows;
  Seconds predicted;
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEstimate& e = traced.plan.estimate.kernels[k];
    const MatchedPlanKernel& m = t.kernels[k];
    const bool there = m.launches > 0;
    predicted += e.time;
    rows.push_back({e.name, name_of(e.kind), in_microseconds(e.time),
                    there ? in_microseconds(m.time.median) : "-",
                    there ? off_by(e.time, m.time.median) : "",
                    there ? std::to_string(m.launches) : "-", matched_by(t, k)});
    if (counted)
      rows.back().insert(rows.back().end(),
                         {megabytes(e.hbm_read + e.hbm_write), hbm_of(m.counters)});
  }
  rows.push_back({"sum", "", in_microseconds(predicted), in_microseconds(t.matched()),
                  off_by(predicted, t.matched()), "", ""});
  if (counted) rows.back().insert(rows.back().end(), {"", ""});
  return format_table(columns, rows);
}

std::string unmatched_table(const MatchedTrace& t) {
  if (t.unmatched.empty()) return "\nEvery launch of the block is a kernel of the plan.\n";
  std::vector<std::vector<std::string>> rows;
  for (const UnmatchedActivity& u : t.unmatched)
    rows.push_back({u.name, std::to_string(u.launches), in_microseconds(u.time),
                    t.busy.median > Seconds(0) ? percent(u.time / t.busy.median) : "-"});
  return "\n" + format_table({{"in the block, and no kernel of the plan", Align::left},
                              {"launches"},
                              {"µs"},
                              {"share of the block"}},
                             rows);
}

std::string tensors_table(const MatchedTrace& t) {
  if (t.tensors.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const TensorTraffic& tensor : t.tensors)
    rows.push_back({tensor.tensor, megabytes(tensor.predicted_read), megabytes(tensor.read),
                    megabytes(tensor.predicted_write), megabytes(tensor.write)});
  return "\n" +
         format_table(
             {{"tensor", Align::left}, {"HBM read MB"}, {"measured"}, {"written"}, {"measured"}},
             rows) +
         wrap(
             "measured: the counters of each kernel, divided among its tensors as the prediction "
             "divides them");
}

std::string trace_report(const TracedBlock& traced) {
  const MatchedTrace& t = traced.trace;
  std::string out = wrap(fmt::format(
      "{} on {}: {} launches a block, {} block{} in {} of {}{}", traced.block().label(),
      traced.selection.gpu.name, t.launches.size(), t.repetitions, t.repetitions == 1 ? "" : "s",
      std::filesystem::path(traced.list.path).filename().string(), traced.list.tool,
      t.device.empty() ? "" : " (" + t.device + ")"));
  if (traced.chosen)
    out += wrap(fmt::format("policy {} {}; --policy names another", t.policy,
                            traced.doubt().empty() ? "matches best" : "is the nearest"));
  out += "\n" + planned_kernels_table(traced) + unmatched_table(t);
  if (traced.list.in_place) {
    out += "\n" + wrap(fmt::format(
                      "block: {} µs with a kernel running ({} to {}), {} µs from begin to end; {} "
                      "µs are predicted",
                      in_microseconds(t.busy.median), in_microseconds(t.busy.least),
                      in_microseconds(t.busy.most), in_microseconds(t.span.median),
                      in_microseconds(traced.plan.estimate.time)));
    if (t.elsewhere > Seconds(0) && t.whole > Seconds(0))
      out += wrap(fmt::format(
          "outside of these blocks: {} µs, {} of the trace's time on the GPU (other layers' and "
          "the framework's kernels, copies, blocks that differ)",
          in_microseconds(t.elsewhere), percent(t.elsewhere / t.whole)));
  }
  return out + tensors_table(t);
}

}  // namespace

CommandResult import_trace_command(const Arguments& args) {
  std::vector<std::string> files;
  SelectionTexts block;
  MeasuredTexts measured;
  std::optional<std::string> format;
  Options options(
      "import trace",
      "Finds the kernels of a plan in a profiler's trace: a Chrome trace of PyTorch's profiler "
      "(.json, .json.gz),\n'nsys export --type sqlite', 'nsys stats --report cuda_gpu_trace "
      "--format csv', or 'ncu --csv --page raw'.\nRepeated blocks are found, and medians taken.",
      {"fuseline import trace trace.json.gz --model llama2-7b --gpu h200 --phase forward --seq "
       "2048",
       "fuseline import trace trace.sqlite --model llama3-8b --gpu h100 --phase decode \\",
       "                      --context 4096 --policy torch-compile --output mine"});
  options.positional("FILE", "the trace", files, 1);
  block.add_to(options);
  block.add_plan_to(options);
  measured.add_to(options);
  measured.add_folder_to(options);
  options.text("--format", "table|json", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (files.empty())
    throw InputError(
        {.file = kCommandLine,
         .field = "FILE",
         .message = "is missing",
         .allowed = "a trace of PyTorch's profiler, Nsight Systems or Nsight Compute"});
  const bool json = parse_word("--format", format.value_or("table"), {"table", "json"}) == "json";
  check_profiled_block(block);
  const ExistingFolder existing = measured.existing();
  if (measured.output) check_measurement_folder(*measured.output, existing);

  ProgressBar bar;
  const TracedBlock traced = match_traced_block(
      files.front(), block, [&bar](const std::string& what, double done) { bar.show(what, done); });
  bar.clear();
  CommandResult result{
      json ? traced_block_json(traced) : trace_report(traced), {}, ExitStatus::done};
  std::vector<std::string> notes = traced.trace.notes;
  if (const std::string why = traced.doubt(); !why.empty()) notes.insert(notes.begin(), why);
  if (measured.output) {
    Measurements all = traced.measurements();
    measured.take(all.meta, notes);
    write_measurements(*measured.output, all, existing);
  }
  for (const std::string& note : notes) result.messages += "fuseline: note: " + note + "\n";
  if (measured.output)
    result.messages += fmt::format("fuseline: written {0}; see fuseline compare {0} --kernels\n",
                                   *measured.output);
  return result;
}

}  // namespace fuseline
