// fuseline limits: what a block's kernels move at least, for the memories that a GPU has.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_table.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/nests/traffic_limits.h"

namespace fuseline {

namespace {

std::string mebibytes(Bytes b) { return fmt::format("{:.1f}", b.as_double() / (1 << 20)); }

std::string tiled_text(const std::optional<TiledTraffic>& t) {
  return t ? megabytes(t->moved) : "-";
}

std::string kernels_table(const std::vector<KernelTraffic>& kernels, const char* name) {
  if (kernels.empty()) return {};
  std::vector<std::vector<std::string>> rows, loops, tiles;
  for (const KernelTraffic& k : kernels) {
    rows.push_back({k.name, megabytes(k.hbm.least), tiled_text(k.hbm.tiled),
                    megabytes(k.hbm.predicted),
                    k.l2.least.value() > 0 ? megabytes(k.l2.least) : "-", tiled_text(k.l2.tiled),
                    megabytes(k.l2.predicted)});
    loops.push_back({k.name, k.loops});
    tiles.push_back({k.name, k.hbm.tiled ? describe(k.hbm.tiled->tiles) : "-",
                     k.l2.tiled ? describe(k.l2.tiled->tiles) : "-"});
  }
  return "\n" +
         format_table({{name, Align::left},
                       {"HBM least"},
                       {"tiled"},
                       {"predicted"},
                       {"L2 least"},
                       {"tiled"},
                       {"predicted"}},
                      rows) +
         "\n" + format_table({{name, Align::left}, {"loops", Align::left}}, loops) + "\n" +
         format_table(
             {{name, Align::left}, {"tiles in L2", Align::left}, {"tiles in an SM", Align::left}},
             tiles);
}

std::string limits_text(const Selection& s, const TrafficLimits& l) {
  const std::string& model = s.model.title.empty() ? s.model.name : s.model.title;
  std::string text =
      fmt::format("{}, one block of {}: {}\n", model, s.model.layers, describe(s.workload)) +
      describe(s.gpu) + "\n";
  text +=
      wrap(fmt::format("on chip: {} MiB (L2 {} MiB; shared memory and registers of an SM {} KiB)",
                       mebibytes(l.on_chip), mebibytes(s.gpu.l2_capacity), l.of_sm.value() >> 10));
  const Bytes predicted = l.estimate.hbm_read + l.estimate.hbm_write;
  text += wrap(fmt::format(
      "the block: {} MB touched once, {} MB at least, {} MB predicted of {} ({} of the least)",
      megabytes(l.estimate.limits.compulsory), megabytes(l.block_least), megabytes(predicted),
      l.estimate.policy,
      l.block_least.value() > 0 ? times(predicted.as_double() / l.block_least.as_double()) : "-"));
  text += kernels_table(l.kernels, "kernel") + kernels_table(l.chains, "two in one");
  text += wrap(
      "MB; each kernel alone. least: no schedule moves less. tiled: the best tiling and order that "
      "fits the L2, or one SM, and respects every dependence. predicted: what the simulator's "
      "kernel moves; it may find in L2 what the kernel before it left.");
  return text;
}

std::vector<const KernelTraffic*> worked_out(const TrafficLimits& l) {
  std::vector<const KernelTraffic*> all;
  for (const auto* list : {&l.kernels, &l.chains})
    for (const KernelTraffic& k : *list) all.push_back(&k);
  return all;
}

std::string curves_text(const std::vector<const KernelTraffic*>& kernels, const Gpu& gpu) {
  std::string text;
  for (const KernelTraffic* k : kernels) {
    std::vector<std::vector<std::string>> rows;
    for (const Bytes capacity : curve_capacities(*k, gpu)) {
      const auto best = best_within(k->curve, capacity);
      rows.push_back({fmt::format("{:.3f}", capacity.as_double() / (1 << 20)),
                      megabytes(k->least_at(capacity)), tiled_text(best),
                      best ? describe(best->tiles) : "-"});
    }
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", k->name, k->loops) +
            format_table({{"near MiB"}, {"least MB"}, {"tiled MB"}, {"tiles", Align::left}}, rows);
  }
  return text;
}

}  // namespace

CommandResult limits_command(const Arguments& args) {
  SelectionTexts texts;
  std::vector<std::string> scenario;
  std::optional<std::string> format, kernel, plot;
  bool curve = false;
  Options options("limits",
                  "What a block and its kernels move at least between the memories of a GPU, and "
                  "what the best tiling reaches; for any size of the near memory with --curve.",
                  {"fuseline limits --model llama3-8b --gpu h200 --seq 2048",
                   "fuseline limits --model llama2-7b --curve --kernel gate_up",
                   "fuseline limits --model llama2-7b --curve --kernel 'gate_up + down' --plot "
                   "curve.svg"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  texts.add_plan_to(options);
  options.flag("--curve", "for sizes of the near memory from 16 KiB up", curve);
  options.text("--kernel", "NAME", "with --curve: of this kernel, or of two: 'a + b'", kernel);
  options.text("--plot", "FILE.svg", "with --curve and --kernel: a drawing", plot);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  const auto needs = [&](const char* option, const std::string& value, const char* other) {
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = value,
                      .message = "is about curves",
                      .allowed = fmt::format("with {}", other)});
  };
  if (kernel && !curve) needs("--kernel", *kernel, "--curve");
  if (plot && !(curve && kernel)) needs("--plot", *plot, "--curve --kernel NAME");
  if (chosen == "csv" && !curve) needs("--format", "csv", "--curve");
  if (plot) check_writable(*plot, "--plot");
  if (!texts.policy && !texts.plan) texts.policy = "coda";
  const Selection s =
      resolve_selection(scenario.empty() ? std::nullopt : std::optional(scenario.front()), texts);
  if (s.policies.size() > 1)
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .value = texts.policy.value_or(""),
                      .message = "names several plans",
                      .allowed = "one policy, whose kernels are looked at"});
  ProgressBar bar;
  const TrafficLimits limits = traffic_limits(
      plan_of(s, s.policies.front()), s.gpu, {.launching = s.launching},
      [&bar](const std::string& name, double done) { bar.show(name, done); }, kernel.value_or(""));
  bar.clear();
  if (kernel && worked_out(limits).empty())
    throw InputError({.file = kCommandLine,
                      .field = "--kernel",
                      .value = *kernel,
                      .message = "is no kernel with a curve in this plan",
                      .allowed = fmt::format("{}", fmt::join(limits.names, ", ")),
                      .nearest = nearest_name(*kernel, limits.names)});
  if (!curve) {
    return {chosen == "json" ? traffic_limits_json(s, limits) : limits_text(s, limits),
            {},
            ExitStatus::done};
  }
  const std::vector<const KernelTraffic*> kernels = worked_out(limits);
  std::string said;
  if (plot) {
    write_file_atomically(*plot, draw_curve(*kernels.front(), s.gpu).file(), "--plot");
    said = fmt::format("fuseline: written {}\n", *plot);
  }
  return {chosen == "json"  ? traffic_limits_json(s, limits)
          : chosen == "csv" ? curves_csv(kernels, s.gpu)
                            : curves_text(kernels, s.gpu),
          said, ExitStatus::done};
}

}  // namespace fuseline
