#include "cli/calibrate_here.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/format.h"
#include "base/path_kind.h"
#include "cli/long_work.h"
#include "cli/measure_output.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure.h"
#include "model/config/model_files.h"
#include "sim/judge/here.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostMinutes = 24 * 60;
constexpr int kReplays = 20, kRounds = 2;

// Runs a step's plans as CUDA kernels on the GPU of this machine.
class GpuMeasurer : public Measurer {
 public:
  GpuMeasurer(const Gpu& gpu, std::string date, std::string command)
      : gpu_(gpu), date_(std::move(date)), command_(std::move(command)) {}

  Measurements measure(const HereStep& step) override {
    cuda::MeasureOptions options;
    options.workers.threads = executor::available_threads();
    options.workers.stop = InterruptGuard::flag();
    options.replays = kReplays;
    options.rounds = kRounds;
    options.check = cuda::CheckSize::small;
    const cuda::GpuMeasurement result =
        cuda::measure(load_model(step.model), step.workload, step.policies, gpu_, options);
    if (!result.passed()) {
      throw MissingError("outputs are not what fp64 says: " + first_failure(result));
    }
    Measurements m = cuda::as_measurements(result, gpu_);
    m.meta.date = date_;
    m.meta.version = version();
    m.meta.command = command_;
    m.meta.clocks = "not locked; SM clock and power beside each time";
    return m;
  }

 private:
  const Gpu& gpu_;
  std::string date_, command_;
};

Seconds now() {
  return Seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// The file that describes the GPU: where --gpu is a path that, else the shipped one.
std::string text_of_gpu_file(const std::optional<std::string>& option, const Gpu& gpu) {
  if (option && kind_of_path(*option) == PathKind::regular) return read_input_file(*option);
  return read_input_file(data_dir() / "gpus" / (gpu.name + ".toml"));
}

void refuse_existing(const std::string& path) {
  if (kind_of_path(path) == PathKind::missing) return;
  throw InputError({.file = kCommandLine,
                    .field = "--output",
                    .value = path,
                    .message = "is there already, and a calibration is not written over another",
                    .allowed = "a file that does not exist"});
}

std::string errors_text(const HereResult& r) {
  const auto row = [](const char* what, const HereError& e) {
    return std::vector<std::string>{what, std::to_string(e.blocks), percent(e.mean),
                                    percent(e.worst)};
  };
  return format_table(
      {{"kept-out blocks, by the constants", Align::left}, {"times"}, {"mean |error|"}, {"worst"}},
      {row("as described before", r.before), row("fitted here", r.after)});
}

}  // namespace

CommandResult calibrate_the_gpu_here(const HereTexts& texts, const Arguments& args) {
  HereOptions options;
  options.budget = Seconds(60.0 * static_cast<double>(parse_whole_number(
                                      "--minutes", texts.minutes.value_or("10"), 1, kMostMinutes)));
  options.iterations =
      static_cast<int>(parse_whole_number("--iterations", texts.iterations.value_or("5"), 1, 1000));
  options.clock = now;
  const std::time_t time = std::time(nullptr);
  options.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(time));
  if (texts.output) refuse_existing(*texts.output);
  const cuda::DeviceInfo device = cuda::device_here();
  const Gpu gpu = texts.gpu ? load_gpu_option(texts.gpu) : cuda::known_gpu(device);
  if (texts.gpu) {
    std::vector<Gpu> known;
    for (const std::string& shipped : gpu_names()) known.push_back(load_gpu(shipped));
    if (const std::string why = cuda::other_card(gpu, device, known); !why.empty()) {
      throw InputError({.file = kCommandLine,
                        .field = "--gpu",
                        .value = *texts.gpu,
                        .message = "describes another card: " + why,
                        .allowed = "a description of the GPU that is here"});
    }
  }
  const std::string name = texts.name.value_or(gpu.name + "-here");
  const std::string file = texts.output.value_or(name + ".toml");
  refuse_existing(file);
  const fs::path folder = texts.folder.value_or("calibration-" + name);

  const HereResult result = run_long_work([&](const ShowProgress& show) {
    GpuMeasurer measurer(gpu, options.date, recorded_command(args, "calibrate"));
    options.progress = show;
    return calibrate_here(gpu, folder, measurer, options);
  });
  std::string messages;
  for (const std::string& step : result.left_out)
    messages += "fuseline: not measured: " + step + "\n";
  std::string text =
      errors_text(result) + fmt::format(
                                "{} constants fitted; mean |log error| of what they were fitted "
                                "to: {:.4f} before, {:.4f} after\n",
                                result.fit.constants.size(), result.fit.initial_mean_abs,
                                result.fit.mean_abs);
  const std::string source = fmt::format(
      "fuseline calibrate --here on a {} with a driver for CUDA {}", device.name, device.driver);
  write_file_atomically(
      file, calibrated_file(text_of_gpu_file(texts.gpu, gpu), name, result, source, options.date));
  if (!result.fit_is_taken()) {
    messages += fmt::format(
        "fuseline: on blocks that were kept out the fitted constants are worse than the described "
        "ones, so {} has the described ones and what they were checked on; more minutes may help\n",
        file);
  }
  messages += fmt::format("fuseline: written {} and {}\n", file, folder.string());
  return {std::move(text), std::move(messages), ExitStatus::done};
}

}  // namespace fuseline
