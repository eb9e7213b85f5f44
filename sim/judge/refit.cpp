#include "sim/judge/refit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/path_kind.h"
#include "base/piece_text.h"
#include "base/thread_sharing.h"
#include "base/toml_file.h"
#include "base/toml_text.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/gpu_file.h"
#include "sim/judge/validation.h"

namespace fuseline {

namespace {

// What a fit may see: the measurements without those of one model.
Measurements left_after(const Measurements& all, const std::optional<std::string>& without,
                        const std::vector<ModelConfig>& models) {
  Measurements kept = all;
  if (without) {
    std::erase_if(kept.blocks, [&](const auto& b) { return b.block.model == *without; });
    std::erase_if(kept.traces, [&](const auto& t) { return t.block.model == *without; });
    // A shape that other models have too is left out as well: it would tell the fit the answer.
    const auto left_out = std::ranges::find(models, *without, &ModelConfig::name);
    if (left_out != models.end()) {
      const Projections its_own = projections_of(*left_out);
      std::erase_if(kept.gemms, [&](const MeasuredGemm& g) { return its_own.have(g); });
    }
  }
  return kept;
}

// Parts of about equal work: cases are listed by model, so every so many.
std::vector<Measurements> split(const Measurements& all, std::size_t parts) {
  std::vector<Measurements> out(parts);
  const auto deal = [&](const auto& from, auto member) {
    for (std::size_t i = 0; i < from.size(); ++i) (out[i % parts].*member).push_back(from[i]);
  };
  deal(all.blocks, &Measurements::blocks);
  deal(all.traces, &Measurements::traces);
  deal(all.gemms, &Measurements::gemms);
  return out;
}

std::vector<double> residuals_of(const Measurements& measurements,
                                 const std::vector<ModelConfig>& models, const MeasuredTiles& tiles,
                                 const Gpu& gpu) {
  const Predictor predictor = simulated_predictor(
      "fit", Fidelity::hierarchy, models, [&gpu](const std::string&) -> const Gpu& { return gpu; },
      tiles);
  const ErrorTable table = validate(measurements, std::span(&predictor, 1));
  std::vector<double> residuals;
  for (const JudgedCase& c : table.cases) {
    // Whole blocks' bytes repeat what their kernels say.
    if (c.quantity == Quantity::block_hbm || c.quantity == Quantity::kernel_time) continue;
    residuals.push_back(c.error(0) ? log_error(*c.error(0)) : 0.0);
  }
  return residuals;
}

}  // namespace

double log_error(double error) {
  constexpr double kLeastRatio = 0.05;
  return std::log(std::max(1.0 + error, kLeastRatio));
}

// A constant that is a tenth larger and moves no time by as much as this on average is not one that
// the measurements tell of.
constexpr double kTold = 5e-4, kMoved = 1.1;

namespace {

double mean_change(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

// The parameters at the GPU's own values.
std::vector<FitParameter> parameters_of(const Gpu& gpu) {
  std::vector<FitParameter> all = refit_parameters();
  for (FitParameter& p : all) p.initial = std::clamp(constant_of(gpu, p.name), p.lower, p.upper);
  return all;
}

}  // namespace

std::vector<FitParameter> told_parameters(const std::vector<FitParameter>& all,
                                          const ResidualFn& residuals) {
  std::vector<FitParameter> told;
  const std::vector<double> now = residuals({});
  for (const FitParameter& p : all) {
    const double moved = p.initial * (p.initial * kMoved <= p.upper ? kMoved : 1 / kMoved);
    if (mean_change(now, residuals({{p.name, moved}})) > kTold) told.push_back(p);
  }
  return told;
}

// Starting values are round: datasheet fractions near what streaming and GEMM kernels reach
// anywhere, microseconds of the order of a launch.
std::vector<FitParameter> refit_parameters() {
  constexpr double kFree = 1.0;
  return {
      {"attention.exp_cycles", 0.1, 0.02, 1, kFree},
      {"attention.hbm_fraction", 0.9, 0.3, 1.2, kFree},
      {"attention.item_cycles_per_width", 20, 1, 200, kFree},
      {"attention.product_exposed", 1.0, 0.2, 3, kFree},
      {"attention.split_start_us", 3.0, 0.1, 20, kFree},
      {"attention.start_us", 3.0, 0.1, 30, kFree},
      {"gemm.hbm_fraction", 0.9, 0.4, 1.0, kFree},
      {"gemm.reduction_us", 1.0, 0.1, 20, kFree},
      {"gemm.sm_fetch_bytes_per_cycle", 64, 10, 200, kFree},
      {"gemm.start_us", 2.0, 0.2, 20, kFree},
      {"gemm.tensor_fraction", 0.8, 0.4, 1.0, kFree},
      {"l2.capacity_fraction", 0.5, 0.2, 1.0, kFree},
      {"launch.gap_us", 0.3, 0.01, 5, kFree},
      {"power.tensor_pj_per_flop", 0.7, 0.1, 3.0, kFree},
      {"stream.concat_instructions", 100, 10, 500, kFree},
      {"stream.gelu_instructions", 40, 1, 200, kFree},
      {"stream.generated_norm_instructions", 80, 1, 500, kFree},
      {"stream.hbm_fraction", 0.9, 0.5, 1.1, kFree},
      {"stream.layer_norm_instructions", 50, 1, 300, kFree},
      {"stream.ramp_us", 1.5, 0.1, 5, kFree},
      {"stream.row_instructions", 50, 1, 300, kFree},
      {"stream.row_step_us", 0.5, 0.01, 3, kFree},
      {"stream.strided_instructions", 100, 10, 300, kFree},
      {"stream.strided_latency_us", 1.0, 0.05, 5, kFree},
  };
}

std::vector<double> shared_residuals(Sharing& sharing, const ConstantValues& constants,
                                     const std::function<std::vector<double>(std::size_t)>& part) {
  std::string name = "residuals";
  for (const auto& [constant, value] : constants) name += fmt::format(" {} {:a}", constant, value);
  const SharedTexts shared = sharing.texts(name, kFitParts, [&](std::size_t i) {
    PieceWriter out;
    for (const double r : part(i)) out.real(r);
    return std::move(out).text();
  });
  FUSELINE_ASSERT(shared.all, "nobody stops a fit");
  std::vector<double> all;
  for (const std::string& text : shared.texts)
    for (PieceReader in(text); in.more();) all.push_back(in.real());
  return all;
}

FitResult refit(const Measurements& measurements, const Gpu& gpu, const RefitOptions& options) {
  const std::vector<ModelConfig> models = measured_models(measurements);
  if (options.without && std::none_of(models.begin(), models.end(), [&](const ModelConfig& m) {
        return m.name == *options.without;
      })) {
    std::vector<std::string> names;
    for (const ModelConfig& m : models) names.push_back(m.name);
    throw InputError({.field = "--without",
                      .value = *options.without,
                      .message = "no block of that model was measured in " + measurements.path,
                      .allowed = fmt::format("{}", fmt::join(names, ", ")),
                      .nearest = nearest_name(*options.without, names)});
  }
  const Measurements kept = left_after(measurements, options.without, models);
  if (kept.blocks.empty() && kept.traces.empty() && kept.gemms.empty()) {
    throw InputError({.file = measurements.path,
                      .message = "nothing is left to fit constants to",
                      .allowed = "measurements of at least two models"});
  }
  const MeasuredTiles tiles(kept);  // a part may have a block whose trace is in another one
  const std::vector<Measurements> parts = split(kept, kFitParts);
  ThreadSharing threads;
  Sharing& sharing = options.sharing != nullptr ? *options.sharing : threads;

  int evaluations = 0;
  const ResidualFn residuals = [&](const ConstantValues& constants) {
    const Gpu candidate = with_constants(gpu, constants);
    const std::vector<double> all = shared_residuals(sharing, constants, [&](std::size_t part) {
      return residuals_of(parts[part], models, tiles, candidate);
    });
    if (options.progress) options.progress(++evaluations);
    return all;
  };
  const std::vector<FitParameter> parameters =
      options.from_gpu ? told_parameters(parameters_of(gpu), residuals) : refit_parameters();
  return fit_constants(parameters, residuals, {.iterations = options.iterations});
}

Gpu with_constants(Gpu gpu, const ConstantValues& constants) {
  for (const auto& [name, value] : constants) set_constant(gpu, name, value);
  return gpu;
}

std::string calibration_toml(const ConstantValues& constants, const std::string& source,
                             const std::string& date) {
  std::string text = "[calibration]\n";
  const std::string quoted_source = toml_text(source);
  for (const auto& [name, value] : constants) {
    text += fmt::format(
        "{} = {{ value = {:.4g}, unit = \"{}\", source = {}, date = {}, status = "
        "\"fitted\" }}\n",
        name, value, find_constant(name)->unit, quoted_source, toml_text(date));
  }
  return text;
}

std::map<std::string, ConstantValues> load_left_out_constants(
    const std::string& folder, const std::vector<std::string>& models) {
  std::map<std::string, ConstantValues> all;
  for (const std::string& model : models) {
    const std::filesystem::path path =
        std::filesystem::path(folder) / ("without-" + model + ".toml");
    if (kind_of_path(path) != PathKind::missing) all[model] = read_constants(TomlTable::load(path));
  }
  return all;
}

}  // namespace fuseline
