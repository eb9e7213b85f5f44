#include "cli/calibrate_table.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "base/printable.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/judge/gemm_table.h"
#include "sim/judge/refit.h"

namespace fuseline {

namespace {

// A step of the fit moves each constant once, and tries a few new values of all.
constexpr double kEvaluationsOfAStep = 12;

std::string errors(const char* rows, std::size_t count, const TableError& before,
                   const TableError& after) {
  return fmt::format("{} {} rows: mean |error| {} before, {} after; mean error {} after", count,
                     rows, percent(before.mean), percent(after.mean), percent(after.bias));
}

}  // namespace

CommandResult calibrate_by_table(const TableTexts& texts, SharedRun& run) {
  if (!texts.gpu) {
    throw InputError({.file = kCommandLine,
                      .field = "--gpu",
                      .message = "is missing",
                      .allowed = "the GPU that the table is of"});
  }
  const int iterations =
      static_cast<int>(parse_whole_number("--iterations", texts.iterations.value_or("6"), 1, 1000));
  const GemmTable table = load_gemm_table(texts.table);
  const Gpu gpu = load_gpu_option(texts.gpu);
  ProgressBar bar;
  const auto progress = [&](int evaluations) {
    if (!run.first()) return;
    bar.show(fmt::format("{} predictions of the table", evaluations),
             std::min(1.0, evaluations / (kEvaluationsOfAStep * (1 + iterations))));
  };
  const TableFit result = fit_gemm_table(table, gpu, iterations, progress, &run.sharing());
  bar.clear();
  if (!run.first()) return {};
  const std::string fitted =
      errors("fitted", table.fitted.size(), result.fitted_before, result.fitted_after);
  const std::string held = errors("held", table.held.size(), result.held_before, result.held_after);
  const std::string name = std::filesystem::path(texts.table).filename().string();
  const std::time_t now = std::time(nullptr);
  std::string text =
      fmt::format("# Constants of {}, fitted to two of every three rows of {}.\n# {}\n# {}\n",
                  printable(gpu.name, 1000), printable(name, 1000), fitted, held) +
      calibration_toml(result.fit.constants, name, fmt::format("{:%Y-%m-%d}", fmt::gmtime(now)));
  const std::string summary = "fuseline: " + fitted + "\nfuseline: " + held + "\n";
  if (!texts.output) return {std::move(text), summary, ExitStatus::done};
  write_file_atomically(*texts.output, text);
  run.done();
  return {{}, summary + "fuseline: written " + *texts.output + "\n", ExitStatus::done};
}

}  // namespace fuseline
