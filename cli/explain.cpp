// fuseline explain: a policy's kernels, their programs, and why neighbours share a kernel or do
// not.
#include "model/explain.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "cuda/emit/plan_source.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/programs/program_file.h"
#include "sim/report/explained_plan.h"
#include "sim/report/prediction_charts.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

struct ExplainOptions {
  SelectionTexts selection;
  std::optional<std::string> kernel, format, output, plot;
  std::vector<std::string> scenario;
  bool cuda = false;
};

std::string predicted_text(const Sureness& sure, const std::string& policy,
                           const KernelEstimate& k) {
  const Band time = sure.time(k, policy), hbm = sure.hbm(k, policy);
  const Bytes bytes = k.hbm_read + k.hbm_write;
  return fmt::format("predicted {} µs, 90 % {} to {}; HBM {} MB, 90 % {} to {}",
                     in_microseconds(k.time), in_microseconds(low_end(k.time, time)),
                     in_microseconds(high_end(k.time, time)), megabytes(bytes),
                     megabytes(low_end(bytes, hbm)), megabytes(high_end(bytes, hbm)));
}

// Leaves that kernel, the tensors it touches, and the edges of its operators.
Explanation only_kernel(Explanation e, const std::string& name) {
  std::vector<std::string> names;
  for (const KernelExplanation& k : e.kernels) names.push_back(k.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw InputError({.file = kCommandLine,
                      .field = "--kernel",
                      .value = name,
                      .message = "there is no such kernel in the plan of " + e.policy,
                      .allowed = fmt::format("{}", fmt::join(names, ", ")),
                      .nearest = nearest_name(name, names)});
  }
  const KernelExplanation kernel = e.kernels[static_cast<std::size_t>(found - names.begin())];
  const auto has_operator = [&](const std::string& op) {
    return std::find(kernel.operators.begin(), kernel.operators.end(), op) !=
           kernel.operators.end();
  };
  std::erase_if(e.kernels, [&](const KernelExplanation& k) { return k.name != name; });
  std::erase_if(e.tensors, [&](const TensorExplanation& t) {
    return t.producer != name &&
           std::find(t.consumers.begin(), t.consumers.end(), name) == t.consumers.end();
  });
  std::erase_if(e.edges, [&](const EdgeExplanation& edge) {
    return !has_operator(edge.from) && !has_operator(edge.to);
  });
  return e;
}

// The sources of the plan's kernels, or of one; each begins with its program.
std::string cuda_text(const Plan& plan, const Gpu& gpu, const std::optional<std::string>& only) {
  std::string text;
  for (const Kernel& kernel : plan.kernels) {
    if (only && kernel.name != *only) continue;
    for (const cuda::Source& source : cuda::kernel_sources(plan, kernel, gpu, cuda::target_of(gpu)))
      text += (text.empty() ? "" : "\n") + source.text;
  }
  return text;
}

}  // namespace

CommandResult explain_command(const Arguments& args) {
  ExplainOptions o;
  Options options("explain",
                  "A policy's kernels, their programs, and why operators share a kernel or do not.",
                  {"fuseline explain --model llama2-7b --gpu h100 --policy coda",
                   "fuseline explain --policy coda --kernel gate_up",
                   "fuseline explain --cuda --policy coda --kernel gate_up",
                   "fuseline explain --phase decode --policy eager,tensorrt-llm --format json"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", o.scenario, 1);
  o.selection.add_to(options);
  o.selection.add_plan_to(options);
  options.text("--kernel", "NAME", "only this kernel and what touches it", o.kernel);
  options.flag("--cuda", "the kernels' CUDA sources, for the GPU that --gpu names", o.cuda);
  options.text("--format", "text|json|block|program",
               "what to print (text); block, program: as text that is read", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  options.text("--plot", "FILE.svg", "also a drawing of one policy's kernels and tensors", o.plot);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", o.format.value_or("text"), {"text", "json", "block", "program"});
  if (o.plot) check_writable(*o.plot, "--plot");
  const Selection s = resolve_selection(
      o.scenario.empty() ? std::nullopt : std::optional(o.scenario.front()), o.selection);
  if (o.cuda && format != "text")
    throw InputError({.file = kCommandLine,
                      .field = "--format",
                      .value = format,
                      .message = "does not go with --cuda: sources are text",
                      .allowed = "text"});
  if (o.plot && s.policies.size() > 1)
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .value = fmt::format("{}", fmt::join(s.policies, ",")),
                      .message = "names several plans, and a drawing shows one",
                      .allowed = "one policy"});
  std::vector<ExplainedPlan> all;
  std::string sources;
  std::vector<std::string> plans;
  ProgressBar bar;
  double done = 0;
  for (const std::string& policy : s.policies) {
    bar.show(policy, done++ / static_cast<double>(s.policies.size()));
    if (format == "block") break;  // it is the same under every policy
    const Plan plan = plan_of(s, policy);
    if (format == "program") {
      plans.push_back(plan_text(plan, s.gpu.name));
      continue;
    }
    if (o.cuda) {
      if (o.kernel) (void)only_kernel(explain(plan), *o.kernel);  // refuses unknown names
      sources += (sources.empty() ? "" : "\n") + cuda_text(plan, s.gpu, o.kernel);
      continue;
    }
    all.push_back(explain_on(plan, s.gpu));
    if (o.kernel) all.back().what = only_kernel(std::move(all.back().what), *o.kernel);
  }
  bar.clear();
  std::string text;
  if (plans.size() > 1)
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .value = fmt::format("{}", fmt::join(s.policies, ",")),
                      .message = "a text of programs holds one plan",
                      .allowed = "one policy"});
  if (format == "program") {
    text = plans.front();
  } else if (o.cuda) {
    text = std::move(sources);
  } else if (format == "json") {
    text = explanations_json(s, all);
  } else if (format == "block") {
    text = block_file_text(text_of(s.model.blocks.front())->file());
  } else {
    text = wrap(fmt::format("{}: {}; what L2 holds, on {}",
                            s.model.title.empty() ? s.model.name : s.model.title,
                            describe(s.workload), s.gpu.title));
    const Sureness sure(s.gpu, s.workload);
    for (ExplainedPlan& e : all) {
      for (KernelExplanation& k : e.what.kernels) {
        const KernelEstimate* estimate = e.kernel(k.name);
        if (estimate != nullptr) k.predicted = predicted_text(sure, e.what.policy, *estimate);
      }
      text += "\n" + explain_text(e.what);
    }
  }
  std::string messages;
  if (o.plot) {
    write_file_atomically(
        *o.plot, draw_plan(explain_on(plan_of(s, s.policies.front()), s.gpu)).file(), "--plot");
    messages = fmt::format("fuseline: written {}\n", *o.plot);
  }
  if (!o.output) return {std::move(text), std::move(messages), ExitStatus::done};
  write_file_atomically(*o.output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
}

}  // namespace fuseline
