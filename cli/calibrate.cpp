// fuseline calibrate: fits the hierarchy model's constants to measurements.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "sim/judge/refit.h"

namespace fuseline {

namespace {

// A counter on a terminal; nothing where standard error goes to a file.
void show_progress(int evaluations) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\rfuseline: {} simulations of all measured blocks", evaluations);
  std::fflush(stderr);
}

// A comment is one line, whatever stands in it.
std::string line(const std::string& text) { return printable(text, 1000); }

void end_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\n");
}

}  // namespace

CommandResult calibrate_command(const Arguments& args) {
  std::vector<std::string> folders;
  std::optional<std::string> without, gpu_name, iterations, output;
  Options options(
      "calibrate", "Fits the hierarchy model's constants to measurements. Takes minutes.",
      {"fuseline calibrate scenarios/measurements/h200-pytorch --without gpt2-xl --output c.toml"});
  options.positional("MEASUREMENT", "a folder of measurements, or one of its CSV files", folders,
                     1);
  options.text("--without", "MODEL", "leave out what was measured of this model", without);
  options.text("--gpu", "NAME|FILE", "the GPU measured (from the measurement)", gpu_name);
  options.text("--iterations", "N", "at most this many steps of the fit (6)", iterations);
  options.text("--output", "FILE", "write there instead of standard output", output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (folders.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "MEASUREMENT",
                      .message = "is missing",
                      .allowed = "a folder of measurements, or one of its CSV files"});
  }
  const Measurements measurements = load_measurements(folders.front());
  const Gpu gpu = gpu_name || measurements.meta.gpu.empty() ? load_gpu_option(gpu_name)
                                                            : load_gpu(measurements.meta.gpu);
  RefitOptions refit_options;
  refit_options.without = without;
  refit_options.iterations =
      static_cast<int>(parse_whole_number("--iterations", iterations.value_or("6"), 1, 1000));
  refit_options.progress = show_progress;
  const FitResult fit = refit(measurements, gpu, refit_options);
  end_progress();

  const std::string title =
      measurements.meta.title.empty() ? measurements.path : measurements.meta.title;
  const std::string heading = fmt::format(
      "# Constants of the hierarchy model, fitted to: {}{}.\n"
      "# Made by: fuseline calibrate {}{}\n"
      "# Mean |log(predicted / measured)| {:.4f} before, {:.4f} after; {} simulations.\n",
      line(title), without ? ", without " + line(*without) : "", line(folders.front()),
      without ? " --without " + line(*without) : "", fit.initial_mean_abs, fit.mean_abs,
      fit.evaluations);
  const std::time_t now = std::time(nullptr);
  std::string text = heading + calibration_toml(fit.constants, title,
                                                fmt::format("{:%Y-%m-%d}", fmt::gmtime(now)));
  const std::string summary =
      fmt::format("fuseline: mean |log error| {:.4f} before, {:.4f} after {} simulations\n",
                  fit.initial_mean_abs, fit.mean_abs, fit.evaluations);
  if (!output) return {std::move(text), summary, ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, summary + "fuseline: written " + *output + "\n", ExitStatus::done};
}

}  // namespace fuseline
