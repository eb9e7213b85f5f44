// fuseline calibrate: fits the hierarchy model's constants to measurements.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/calibrate_here.h"
#include "cli/calibrate_table.h"
#include "cli/commands.h"
#include "cli/compare_table.h"
#include "cli/long_work.h"
#include "cli/machine_table.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/shared_run.h"
#include "sim/judge/band_rows.h"
#include "sim/judge/next_machine.h"
#include "sim/judge/published.h"
#include "sim/judge/refit.h"
#include "sim/sure/band_file.h"

namespace fuseline {

namespace {

constexpr const char* kBandNotes[] = {
    "Bands of predictions: the interval that holds the truth in 90 of 100 cases.",
    "Made by: fuseline calibrate --bands. `low` and `high` are natural logarithms of measured over",
    "predicted; a band always holds its estimate.",
    "Each row's error is taken over the mean error of its class in other models. The interval that",
    "holds 90 % of these, of a subject and phase, times a class's mean error is the class's band;",
    "of fewer than 60 rows it is as wide to both sides. The mean error of a class leans on 10 rows",
    "of the class with a word less, and a class has at least 5 rows of 2 models. Rows of one model",
    "err alike: an interval is as wide as Student's of the rows that would say as much without.",
    "`spread` says how the size of errors of a phase depends on what is known of the work before "
    "it",
    "is measured (sim/sure/traits.h): errors are first taken over exp(slope (trait - centre)) of "
    "all",
    "its traits, and bands are as many times wider; a class leans on 300 rows there. Which traits",
    "count was chosen on every other model in alphabetical order and checked on the others.",
    "Rows of all GPUs that were measured make classes, whether constants were fitted on them or "
    "not.",
    "`least` and `most` are what was predicted of a class's rows, in seconds or bytes. Beyond them "
    "a",
    "band is 1 + beyond ln(distance) times wider, at most 4 times, and `unseen` times wider where "
    "no",
    "class is of the work's kernels: residuals of left-out models grow so. `beyond` was chosen on",
    "every other model in alphabetical order and checked on the others, `unseen` on all of them.",
    "What is refitted without the model: its bands; its constants only where a measurement folder "
    "has",
    "without-MODEL.toml. Other rows were not used in fitting constants, or are predicted with the",
    "shipped constants, to which a part of h200-pytorch and h200-pytorch-wide contributed.",
    "`widening` stretches bands on GPUs with no fitted constants: `checked` until 90 % of rows of "
    "such",
    "GPUs lie within, at most 2. `uncalibrated` is for GPUs that nobody measured here, and comes",
    "from published figures of others (of frameworks that no policy imitates only those faster",
    "than predicted). The next such GPU is one more draw among machines: each machine weighs the",
    "same, so does each source of a machine, and as many as `machines` says give Student's",
    "interval, at most 5. Where `machines` is missing, nothing was published of the subject, and",
    "`uncalibrated` is twice `checked`: that is assumed.",
    "A gain's band lies around `slope` times the predicted gain's logarithm.",
    "A class with `apart` is of plans with a kernel of a kind to which no constant was fitted: its",
    "rows are of measured plans, make no other class, and have to be 3 of 2 models. A gain's slope",
    "is 1 there. Where such a kind has no class, a plan counts as on a GPU never measured."};

// A comment is one line, whatever stands in it.
std::string line(const std::string& text) { return printable(text, 1000); }

constexpr std::size_t kMostFolders = 64;

void refuse_beside_bands(const std::optional<std::string>& without,
                         const std::optional<std::string>& gpu,
                         const std::optional<std::string>& iterations) {
  const auto refuse = [](const char* option, const std::optional<std::string>& value) {
    if (!value) return;
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = *value,
                      .message = "belongs to the fit of constants, not to --bands",
                      .allowed = "--bands with folders and --output"});
  };
  refuse("--without", without);
  refuse("--gpu", gpu);
  refuse("--iterations", iterations);
}

void refuse_beside_here(const std::vector<std::string>& folders, bool bands,
                        const std::optional<std::string>& without) {
  if (folders.empty() && !bands && !without) return;
  throw InputError({.file = kCommandLine,
                    .field = "--here",
                    .message = "measures what it fits to",
                    .allowed = "--minutes, --folder, --name, --gpu, --iterations, --output"});
}

// It measures on one GPU, and keeps what it measured in its folder.
void refuse_sharing_here(bool resume) {
  if (resume)
    throw InputError({.file = kCommandLine,
                      .field = "--resume",
                      .message = "is for fits to measurements that are there",
                      .allowed = "--here again: it goes on with what its --folder holds"});
  if (Ranks::started_together())
    throw InputError({.file = kCommandLine,
                      .field = "--here",
                      .message = "measures on the GPU of one process",
                      .allowed = "without mpirun or srun"});
}

void refuse_beside_table(const std::vector<std::string>& folders, bool bands, bool here,
                         const std::optional<std::string>& without) {
  if (folders.empty() && !bands && !here && !without) return;
  throw InputError({.file = kCommandLine,
                    .field = "--gemm-table",
                    .message = "is all that constants are fitted to",
                    .allowed = "--gpu, --iterations, --output"});
}

void refuse_without_here(const HereTexts& texts) {
  for (const auto& [option, value] : {std::pair{"--minutes", &texts.minutes},
                                      {"--folder", &texts.folder},
                                      {"--name", &texts.name}}) {
    if (!*value) continue;
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = **value,
                      .message = "belongs to a calibration of the GPU here",
                      .allowed = "with --here"});
  }
}

// Models left out one by one; machines, where several were measured; then rows of GPUs without
// fitted constants, by bands that are not widened for them.
std::string coverage_report(const std::vector<Residual>& rows) {
  std::string of_models =
      "each model by bands made without it" + coverage_text(left_out_coverage(rows));
  if (const auto machines = other_machine_coverage(rows); !machines.empty())
    of_models +=
        "\neach GPU by bands made without it and without the model" + coverage_text(machines);
  const auto others = not_widened_coverage(rows);
  if (others.empty()) return of_models;
  const auto never = left_out_machines(rows);
  return of_models +
         "\nGPUs without fitted constants, each model by bands made without it and not widened for "
         "them" +
         coverage_text(others) +
         (never.empty() ? ""
                        : "\neach GPU that nobody measured by bands that the others widen\n\n" +
                              left_out_machines_text(never));
}

void add_published(std::vector<Residual>& rows) {
  std::vector<JudgedFigure> figures;
  for (const PublishedFigure& f :
       load_published_figures((data_dir() / "published" / "figures.csv").string())) {
    figures.push_back(judge(f));
  }
  std::ranges::copy(published_rows(figures), std::back_inserter(rows));
}

// Bands from residuals: the file that predictions take them from.
CommandResult calibrate_bands(std::vector<std::string> folders,
                              const std::optional<std::string>& output, SharedRun& run) {
  const bool all = folders.empty();
  if (all) {
    folders = measurement_folders();
    std::ranges::copy(plan_folders(), std::back_inserter(folders));
  }
  ProgressBar bar;
  std::vector<Residual> rows =
      band_rows(folders, run.sharing(), [&](std::size_t done, std::size_t count) {
        bar.show(fmt::format("{} of {} folders", done, count),
                 static_cast<double>(done) / static_cast<double>(count));
      });
  bar.clear();
  if (!run.first()) return {};
  if (all) add_published(rows);
  require_rows_for_bands(rows);
  const std::time_t now = std::time(nullptr);
  BandSources sources{.measurements = {},
                      .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(now)),
                      .notes = {std::begin(kBandNotes), std::end(kBandNotes)}};
  for (const std::string& folder : folders) {
    sources.measurements.push_back(std::filesystem::path(folder).filename().string());
  }
  if (all) sources.measurements.emplace_back("published/figures.csv");
  const BandTable table = fit_bands(rows);
  const std::string summary = coverage_report(rows);
  std::string text = bands_toml(table, sources);
  if (!output) return {std::move(text), summary, ExitStatus::done};
  write_file_atomically(*output, text);
  run.done();
  return {{}, summary + "fuseline: written " + *output + "\n", ExitStatus::done};
}

CommandResult calibrated(const Arguments& args) {
  std::vector<std::string> folders;
  std::optional<std::string> without, gpu_name, iterations, output, table;
  bool bands = false, here = false, resume = false;
  HereTexts here_texts;
  Options options(
      "calibrate",
      "Fits the hierarchy model's constants to measurements, with --here to its own. Takes "
      "minutes.",
      {"fuseline calibrate scenarios/measurements/h200-pytorch --without gpt2-xl --output c.toml",
       "fuseline calibrate --here --minutes 10 --name my-gpu",
       "fuseline calibrate --gemm-table gemm.csv --gpu a100-sxm-80gb",
       "fuseline calibrate --bands --output bands.toml",
       "mpirun -n 4 fuseline calibrate scenarios/measurements/h200-pytorch --output c.toml"});
  options.positional("MEASUREMENT",
                     "a folder of measurements, or one of its CSV files; with --bands several "
                     "folders, or none for all that are shipped",
                     folders, kMostFolders);
  options.flag("--bands", "how sure predictions are, from their errors: scenarios/bands/bands.toml",
               bands);
  options.flag("--here", "measure on the GPU here, fit, check, and write a GPU file", here);
  options.text("--minutes", "N", "with --here: of measuring (10)", here_texts.minutes);
  options.text("--folder", "FOLDER",
               "with --here: its measurements; an interrupted run goes on (calibration-NAME)",
               here_texts.folder);
  options.text("--name", "NAME", "with --here: of the GPU in its new file (the GPU's with -here)",
               here_texts.name);
  options.text("--gemm-table", "FILE",
               "fit to two of three rows of a CSV file of m, n, k and us_median of the library's "
               "products, check on the third",
               table);
  options.text("--without", "MODEL", "leave out what was measured of this model", without);
  options.text("--gpu", "NAME|FILE", "the GPU measured (from the measurement)", gpu_name);
  options.text("--iterations", "N", "at most this many steps of the fit (6)", iterations);
  options.text("--output", "FILE", "write there instead of standard output", output);
  options.flag("--resume", "go on with what an unfinished fit into --output left behind", resume);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (table) refuse_beside_table(folders, bands, here, without);
  if (here) {
    refuse_beside_here(folders, bands, without);
    refuse_sharing_here(resume);
    here_texts.gpu = gpu_name;
    here_texts.iterations = iterations;
    here_texts.output = output;
    return calibrate_the_gpu_here(here_texts, args);
  }
  refuse_without_here(here_texts);
  SharedRun run("calibration", args, output, resume);
  if (table) return calibrate_by_table({*table, gpu_name, iterations, output}, run);
  if (bands) {
    refuse_beside_bands(without, gpu_name, iterations);
    return calibrate_bands(folders, output, run);
  }
  if (folders.size() > 1) {
    throw InputError({.file = kCommandLine,
                      .field = "MEASUREMENT",
                      .value = folders[1],
                      .message = "constants are fitted to one measurement",
                      .allowed = "one folder, or --bands"});
  }
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
  ProgressBar bar;
  refit_options.sharing = &run.sharing();
  refit_options.progress = [&](int evaluations) {
    if (run.first()) bar.show(fmt::format("{} simulations of all measured blocks", evaluations));
  };
  const FitResult fit = refit(measurements, gpu, refit_options);
  bar.clear();
  if (!run.first()) return {};

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
  run.done();
  run.done();
  return {{}, summary + "fuseline: written " + *output + "\n", ExitStatus::done};
}

}  // namespace

CommandResult calibrate_command(const Arguments& args) {
  return one_rank_speaks([&] { return calibrated(args); });
}

}  // namespace fuseline
