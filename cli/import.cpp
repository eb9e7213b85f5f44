// fuseline import: makes a measurement folder of a Nsight Compute CSV, or of tables that are
// already in our form. A word before the file says what it is: import_graph.cpp and
// import_trace.cpp have their own.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "cli/commands.h"
#include "cli/import_options.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/judge/nsight_trace.h"
#include "sim/measured/measurement_write.h"
#include "sim/measured/nsight_csv.h"
#include "sim/measured/nsight_table.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostKernels = 10'000'000;
constexpr double kBytesPerMegabyte = 1e6;
// The collection scripts launch it between blocks; no measured program does.
constexpr const char* kMarkerKernel = "bitwise_not";

struct CountersOptions {
  std::vector<std::string> files;
  SelectionTexts block;
  std::optional<std::string> skip, count;
  MeasuredTexts measured;
};

// Where the kernels of one block come from, and what the user should know of it.
struct Imported {
  Measurements measurements;
  std::string summary;
  std::vector<std::string> notes;
};

// The block that was profiled. Its sizes are said, not assumed.
Selection profiled_block(const CountersOptions& o) {
  required_option("--model", o.block.model, "the model whose block was profiled");
  required_option("--policy", o.block.policy, "the policy that the execution follows, as in eager");
  check_profiled_block(o.block);
  Selection s = resolve_selection(std::nullopt, o.block);
  if (s.policies.size() == 1) return s;
  throw InputError({.file = kCommandLine,
                    .field = "--policy",
                    .value = *o.block.policy,
                    .message = "a file holds kernels of one execution",
                    .allowed = "one policy"});
}

// A file of the user's keeps its place; shipped ones are known by name.
std::string lasting_name(const std::string& text, const std::string& name) {
  return looks_like_path(text) ? fs::absolute(text).lexically_normal().string() : name;
}

// --skip and --count, and without a count the last of several repetitions.
std::vector<NsightKernel> chosen(const CountersOptions& o, std::vector<NsightKernel> kernels,
                                 std::vector<std::string>& notes) {
  const auto at = [&](std::size_t i) { return kernels.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t markers = std::erase_if(kernels, [](const NsightKernel& k) {
    return k.kernel.kernel.find(kMarkerKernel) != std::string::npos;
  });
  if (markers > 0)
    notes.push_back(
        fmt::format("{} marker kernel{} left out", markers, markers == 1 ? " is" : "s are"));
  const auto number = [](const char* option, const std::optional<std::string>& text,
                         std::int64_t least) {
    return static_cast<std::size_t>(parse_whole_number(option, *text, least, kMostKernels));
  };
  const std::size_t skip = o.skip ? number("--skip", o.skip, 0) : 0;
  if (skip >= kernels.size()) {
    throw InputError({.file = kCommandLine,
                      .field = "--skip",
                      .value = o.skip.value_or("0"),
                      .message = "no kernel is left",
                      .allowed = fmt::format("less than the {} kernels of {}", kernels.size(),
                                             o.files.front())});
  }
  kernels.erase(at(0), at(skip));
  if (o.count) {
    const std::size_t count = number("--count", o.count, 1);
    if (count > kernels.size()) {
      throw InputError({.file = kCommandLine,
                        .field = "--count",
                        .value = *o.count,
                        .message = "there are not so many kernels",
                        .allowed = fmt::format("a whole number from 1 to {}", kernels.size())});
    }
    kernels.erase(at(count), kernels.end());
    return kernels;
  }
  const std::size_t length = repetition_length(kernels);
  if (length < kernels.size()) {
    notes.push_back(
        fmt::format("the {} kernels are {} repetitions of {}: the last is taken (--skip and "
                    "--count choose others)",
                    kernels.size(), kernels.size() / length, length));
    kernels.erase(at(0), at(kernels.size() - length));
  }
  return kernels;
}

void note_sources(const std::vector<NsightKernel>& kernels, const Gpu& gpu,
                  std::vector<std::string>& notes) {
  std::set<std::string> processes, devices, capabilities;
  for (const NsightKernel& k : kernels) {
    processes.insert(k.process);
    devices.insert(k.device);
    capabilities.insert(k.compute_capability);
  }
  if (processes.size() > 1) notes.push_back(fmt::format("of {} processes", processes.size()));
  if (devices.size() > 1) notes.push_back(fmt::format("of {} GPUs", devices.size()));
  for (const std::string& c : capabilities) {
    if (c.empty() || gpu.compute_capability.empty() || c == gpu.compute_capability) continue;
    notes.push_back(fmt::format("the file's GPU has compute capability {}, {} has {}", c, gpu.name,
                                gpu.compute_capability));
  }
}

std::string exact_megabytes(Bytes b) {
  return fmt::format("{:.2f}", b.as_double() / kBytesPerMegabyte);
}

std::string kernels_table(const MeasuredTrace& trace) {
  std::vector<std::vector<std::string>> rows;
  Seconds time;
  Bytes l2;
  for (const MeasuredKernel& k : trace.kernels) {
    rows.push_back({k.kernel, k.site.empty() ? "-" : k.site, name_of(k.kind()),
                    fmt::format("{:.2f}", to_us(k.time)), exact_megabytes(k.hbm_read),
                    exact_megabytes(k.hbm_write), exact_megabytes(k.l2)});
    time += k.time;
    l2 += k.l2;
  }
  rows.push_back({"sum", "", "", fmt::format("{:.2f}", to_us(time)),
                  exact_megabytes(trace.hbm_read()), exact_megabytes(trace.hbm_write()),
                  exact_megabytes(l2)});
  return format_table({{"kernel", Align::left},
                       {"step", Align::left},
                       {"kind", Align::left},
                       {"time µs"},
                       {"HBM read MB"},
                       {"written"},
                       {"L2 MB"}},
                      rows);
}

Imported import_nsight(const CountersOptions& o, const std::string& text) {
  const Selection selection = profiled_block(o);
  const std::string& policy = selection.policies.front();
  const Plan plan = plan_of(selection, policy);
  NsightReport report = read_nsight_csv(o.files.front(), text);

  Imported out;
  const std::size_t in_file = report.kernels.size();
  const std::vector<NsightKernel> kernels = chosen(o, std::move(report.kernels), out.notes);
  note_sources(kernels, selection.gpu, out.notes);
  if (report.rounded) {
    out.notes.emplace_back(
        "bytes are rounded: they were printed in larger units (ncu --print-units base prints all "
        "digits)");
  }
  MeasuredTrace trace{.block = {.model = lasting_name(*o.block.model, selection.model.name),
                                .execution = policy,
                                .workload = selection.workload},
                      .kernels = {}};
  for (const NsightKernel& k : kernels) trace.kernels.push_back(k.kernel);
  const SiteAssignment sites = assign_sites(trace.kernels, plan);
  if (!sites.same_kernels) {
    out.notes.push_back(fmt::format(
        "number or kinds of the {} kernels are not those of the {} in the plan of {}: steps stay "
        "empty where their partner is not certain",
        trace.kernels.size(), plan.kernels.size(), policy));
  }
  out.summary = wrap(fmt::format("{} on {}: {} of {} kernels, from line {} of {}; {} belong to a "
                                 "step of the plan",
                                 trace.block.label(), selection.gpu.name, trace.kernels.size(),
                                 in_file, kernels.front().line,
                                 fs::path(o.files.front()).filename().string(), sites.named)) +
                "\n" + kernels_table(trace);
  out.measurements.meta.gpu = lasting_name(*o.block.gpu, selection.gpu.name);
  out.measurements.meta.counters = "Nsight Compute";
  out.measurements.meta.notes = out.notes;
  out.measurements.traces.push_back(std::move(trace));
  return out;
}

// Whether a case agrees with every option that is given.
bool is_selected(const SelectionTexts& only, const BlockCase& c) {
  const auto agrees = [](const std::optional<std::string>& wanted, const std::string& has) {
    return !wanted || *wanted == has;
  };
  const Workload& w = c.workload;
  return agrees(only.model, c.model) && agrees(only.policy, c.execution) &&
         agrees(only.phase, name_of(w.phase)) && agrees(only.batch, std::to_string(w.batch)) &&
         agrees(only.seq, std::to_string(w.seq)) &&
         agrees(only.context, std::to_string(w.context)) && agrees(only.dtype, name_of(w.dtype));
}

Imported import_own(const CountersOptions& o) {
  for (const auto& [name, text] : {std::pair("--skip", o.skip), std::pair("--count", o.count)}) {
    if (!text) continue;
    throw InputError({.file = kCommandLine,
                      .field = name,
                      .value = *text,
                      .message = "chooses kernels of a profile; this file names its blocks",
                      .allowed = "--model, --policy, --phase, --batch, --seq and --context"});
  }
  Imported out;
  Measurements& m = out.measurements = load_measurements(o.files.front());
  std::erase_if(m.blocks, [&](const MeasuredBlock& b) { return !is_selected(o.block, b.block); });
  std::erase_if(m.traces, [&](const MeasuredTrace& t) { return !is_selected(o.block, t.block); });
  if (m.blocks.empty() && m.traces.empty() && m.gemms.empty()) {
    throw InputError({.file = kCommandLine,
                      .message = "nothing is left by the options",
                      .allowed = "models, policies and sizes that " + m.path + " holds"});
  }
  if (o.block.gpu) m.meta.gpu = lasting_name(*o.block.gpu, load_gpu_option(o.block.gpu).name);
  out.summary = fmt::format("{} blocks, {} kernel traces, {} GEMMs of {}\n", m.blocks.size(),
                            m.traces.size(), m.gemms.size(), m.path);
  return out;
}

// Whether the text is a table whose header is one of ours.
bool is_own_form(const std::string& table) {
  std::istringstream text(table);
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line == "\r" || line.front() == '#') continue;
    return line.starts_with("model,execution,") || line.starts_with("m,n,k,");
  }
  return false;
}

CommandResult import_counters(const Arguments& args) {
  CountersOptions o;
  Options options(
      "import",
      "Makes a measurement folder for compare: of one block's kernels in the CSV "
      "output of\nNsight Compute, or of a measurement's own tables.\n\n"
      "'fuseline import trace' finds the kernels of a plan in a profiler's trace, and 'fuseline "
      "import graph'\nwrites a block's text from a saved PyTorch graph; both have options of their "
      "own: fuseline import\ntrace --help.",
      {"fuseline import raw.csv --model llama2-7b --policy eager --phase forward "
       "--seq 2048 \\",
       "                --gpu h200 --driver 580 --date 2026-11-20 --output mine",
       "fuseline import kernels.csv --model gpt2-xl --output gpt2-xl-only"});
  options.positional("FILE", "output of ncu --csv, or a measurement's table or folder", o.files, 1);
  options.words({"graph", "ncu", "trace"}, true);
  o.block.add_to(options);
  options.text("--skip", "N", "leave out the first N kernels of the file", o.skip);
  options.text("--count", "N", "take N kernels (the last of equal repetitions)", o.count);
  o.measured.add_to(options);
  o.measured.add_folder_to(options);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  if (o.files.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "FILE",
                      .message = "is missing",
                      .allowed = "output of ncu --csv, or a measurement's table"});
  }
  if (!o.measured.output) {
    throw InputError({.file = kCommandLine,
                      .field = "--output",
                      .message = "is missing",
                      .allowed = "a folder that does not exist yet"});
  }
  const fs::path folder = *o.measured.output;
  const ExistingFolder existing = o.measured.existing();
  check_measurement_folder(folder, existing);

  // A file is read once: it may be a pipe.
  const std::string& file = o.files.front();
  const bool is_folder = kind_of_path(file) == PathKind::folder;
  const std::string text = is_folder ? std::string() : read_input_file(file, kLargestReport);
  Imported imported = is_folder || is_own_form(text) ? import_own(o) : import_nsight(o, text);
  o.measured.take(imported.measurements.meta, imported.notes);
  write_measurements(folder, imported.measurements, existing);

  CommandResult result{std::move(imported.summary), {}, ExitStatus::done};
  for (const std::string& note : imported.notes)
    result.messages += "fuseline: note: " + note + "\n";
  result.messages +=
      fmt::format("fuseline: written {0}; see fuseline compare {0} --kernels\n", folder.string());
  return result;
}

}  // namespace

CommandResult import_command(const Arguments& args) {
  if (!args.empty() && args.front() == "graph")
    return import_graph_command({args.begin() + 1, args.end()});
  if (!args.empty() && args.front() == "ncu")
    return import_counters({args.begin() + 1, args.end()});
  if (!args.empty() && args.front() == "trace")
    return import_trace_command({args.begin() + 1, args.end()});
  return import_counters(args);
}

}  // namespace fuseline
