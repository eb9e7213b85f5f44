#include "sim/judge/here.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/path_kind.h"
#include "sim/judge/refit.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement_write.h"

namespace fuseline {

namespace {

constexpr std::int64_t kLeastFitted = 8, kLeastChecked = 3;  // block times

Workload at(Phase phase, std::int64_t batch, std::int64_t seq, std::int64_t context = 0) {
  return {.phase = phase, .batch = batch, .seq = seq, .context = context, .dtype = Dtype::bf16};
}

std::vector<BlockCase> cases_of(const HereStep& step) {
  std::vector<BlockCase> cases;
  for (const std::string& policy : step.policies) {
    cases.push_back({step.model, policy, step.workload});
  }
  return cases;
}

bool is_measured(const Measurements& all, const HereStep& step) {
  return std::ranges::all_of(cases_of(step),
                             [&](const BlockCase& c) { return find_block(all, c).has_value(); });
}

// Of steps that are kept out, or of the others.
Measurements part_of(const Measurements& all, const std::vector<HereStep>& steps, bool kept_out) {
  const auto elsewhere = [&](const auto& measured) {
    return std::ranges::none_of(steps, [&](const HereStep& step) {
      return step.kept_out == kept_out &&
             std::ranges::any_of(cases_of(step),
                                 [&](const BlockCase& c) { return same_case(c, measured.block); });
    });
  };
  Measurements part = all;
  std::erase_if(part.blocks, elsewhere);
  std::erase_if(part.traces, elsewhere);
  part.gemms.clear();
  return part;
}

HereError error_of(const Measurements& measurements, const Gpu& gpu) {
  const Predictor predictor = simulated_predictor(
      "here", Fidelity::hierarchy, measured_models(measurements),
      [&gpu](const std::string&) -> const Gpu& { return gpu; }, MeasuredTiles(measurements));
  HereError e;
  for (const JudgedCase& c : validate(measurements, std::span(&predictor, 1)).cases) {
    const auto error = c.error(0);
    if (c.quantity != Quantity::block_time || !error) continue;
    ++e.blocks;
    e.mean += std::abs(*error);
    e.worst = std::max(e.worst, std::abs(*error));
  }
  if (e.blocks > 0) e.mean /= static_cast<double>(e.blocks);
  return e;
}

Measurements measured_before(const std::filesystem::path& folder, const Gpu& described) {
  if (kind_of_path(folder) == PathKind::missing) return {};
  Measurements all = load_measurements(folder.string());
  if (all.meta.gpu == described.name) return all;
  throw InputError({.file = (folder / "meta.toml").string(),
                    .field = "gpu",
                    .value = all.meta.gpu,
                    .message = "is another GPU than the one here, " + described.name,
                    .allowed = "another folder"});
}

void check_enough(const Measurements& fitted, const Measurements& checked,
                  const std::filesystem::path& folder, const HereResult& result) {
  const auto few = [&](const Measurements& m, std::int64_t least, const char* what) {
    const auto count = static_cast<std::int64_t>(m.blocks.size());
    if (count >= least) return;
    std::string why = fmt::format("holds {} block times to {}", count, what);
    for (const std::string& step : result.left_out) why += "; " + step;
    throw InputError({.file = folder.string(),
                      .message = std::move(why),
                      .allowed = fmt::format("at least {}: give it more minutes", least)});
  };
  few(fitted, kLeastFitted, "fit constants to");
  few(checked, kLeastChecked, "check them on");
}

}  // namespace

// Forward and decode, large and small, of models with different widths: their kernels are products
// of all sizes, streams, norms, attention of both phases, and launches of microseconds.
std::vector<HereStep> here_steps() {
  const std::vector<std::string> ladder = {"unfused", "per-operator", "flash-attention", "coda"};
  const std::vector<std::string> two = {"per-operator", "coda"};
  const Seconds large(35), small(25);
  return {
      {"products and streams of 2,048 rows", "llama2-7b", at(Phase::forward, 1, 2048), ladder,
       large},
      {"short kernels", "tinyllama", at(Phase::forward, 1, 256), ladder, small},
      {"decode of one sequence", "llama2-7b", at(Phase::decode, 1, 1, 2048), ladder, large},
      {"kept out: grouped heads", "llama3-8b", at(Phase::forward, 1, 1000), two, small, true},
      {"kept out: decode of several sequences", "llama3-8b", at(Phase::decode, 8, 1, 3000), two,
       small, true},
      {"products and streams of 8,192 rows", "llama2-7b", at(Phase::forward, 4, 2048), two, large},
      {"decode of 16 sequences", "llama2-7b", at(Phase::decode, 16, 1, 2048), ladder, large},
      {"narrow heads and layer norms", "gpt2-xl", at(Phase::forward, 2, 1024), ladder, large},
      {"kept out: another width", "mistral-7b", at(Phase::forward, 2, 3000), two, large, true},
      {"decode with long contexts", "llama2-7b", at(Phase::decode, 4, 1, 16384), two, large},
      {"short kernels of layer norms", "gpt2-large", at(Phase::forward, 1, 200), ladder, small},
      {"decode of a small model", "tinyllama", at(Phase::decode, 4, 1, 1000), ladder, small},
      {"kept out: decode of a small model", "gpt2-xl", at(Phase::decode, 4, 1, 700), two, small,
       true},
      {"products of a wide model", "llama2-13b", at(Phase::forward, 1, 4096), two, large},
      {"decode of many sequences", "llama3-8b", at(Phase::decode, 64, 1, 1024), two, large},
  };
}

HereResult calibrate_here(const Gpu& described, const std::filesystem::path& folder,
                          Measurer& measurer, const HereOptions& options) {
  const std::vector<HereStep> steps = here_steps();
  Measurements all = measured_before(folder, described);
  HereResult result;
  const Seconds begin = options.clock();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const HereStep& step = steps[i];
    if (is_measured(all, step)) {
      ++result.measured;
      continue;
    }
    const Seconds spent = options.clock() - begin;
    if (spent + step.expected > options.budget) {
      result.left_out.push_back(step.what + ": no time was left");
      continue;
    }
    if (options.progress) {
      options.progress(step.what, static_cast<double>(i) / static_cast<double>(steps.size() + 1));
    }
    try {
      write_measurements(folder, measurer.measure(step), ExistingFolder::extend);
    } catch (const MissingError& missing) {
      // Too little memory, say; where nothing can be measured at all, nothing ever was.
      if (result.measured == 0) throw;
      result.left_out.push_back(step.what + ": " + missing.what());
      continue;
    }
    ++result.measured;
    all = load_measurements(folder.string());
  }
  const Measurements fitted = part_of(all, steps, false), checked = part_of(all, steps, true);
  check_enough(fitted, checked, folder, result);
  if (options.progress) options.progress("fitting", 1 - 1.0 / static_cast<double>(steps.size()));
  result.fit = refit(fitted, described, {.iterations = options.iterations, .from_gpu = true});
  result.before = error_of(checked, described);
  result.after = error_of(checked, with_constants(described, result.fit.constants));
  const HereError& kept_out = result.fit_is_taken() ? result.after : result.before;
  result.check = {.measurements = folder.filename().string(),
                  .policies = {},
                  .looked_at = {},
                  .blocks = kept_out.blocks,
                  .mean_error = kept_out.mean,
                  .worst_error = kept_out.worst,
                  .source = "blocks that no constant was fitted to, measured by fuseline",
                  .date = options.date};
  for (const MeasuredBlock& b : checked.blocks) {
    if (std::ranges::find(result.check.policies, b.block.execution) == result.check.policies.end())
      result.check.policies.push_back(b.block.execution);
  }
  return result;
}

}  // namespace fuseline
