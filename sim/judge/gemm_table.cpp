#include "sim/judge/gemm_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/parallel_for.h"
#include "base/thread_sharing.h"
#include "sim/block/single_gemm.h"
#include "sim/judge/refit.h"

namespace fuseline {

namespace {

constexpr std::size_t kHeldOf = 3;  // one row of so many is held

// What times of GEMMs depend on. A rate of L2 beside that of one SM, or the number of loads that
// fill HBM beside the loss where they are fewer, cannot be told apart by them.
constexpr const char* kConstants[] = {"gemm.concurrency_exponent",
                                      "gemm.epilogue_bytes_per_cycle",
                                      "gemm.hbm_fraction",
                                      "gemm.overlap_exponent",
                                      "gemm.reduction_us",
                                      "gemm.sm_fetch_bytes_per_cycle",
                                      "gemm.start_us",
                                      "gemm.tensor_fraction",
                                      "power.tensor_pj_per_flop"};

Seconds predicted_time(const TimedGemm& g, const Gpu& gpu) {
  return estimate_library_gemm({.m = g.m, .n = g.n, .k = g.k, .operands = Operands::rotating}, gpu)
      .time;
}

std::vector<Seconds> predicted(const std::vector<TimedGemm>& gemms, const Gpu& gpu) {
  std::vector<Seconds> times(gemms.size());
  parallel_for(gemms.size(), [&](std::size_t i) { times[i] = predicted_time(gemms[i], gpu); });
  return times;
}

// Within the ranges of the architecture's file, and not below a hundredth of what a constant is
// now: its logarithm is fitted.
std::vector<FitParameter> table_parameters(const Gpu& gpu) {
  std::vector<FitParameter> parameters;
  for (const char* name : kConstants) {
    const ConstantOrigin& origin = gpu.architecture->origins.at(name);
    const double now = constant_of(gpu, name);
    parameters.push_back({name, now, std::max(origin.least, 0.01 * now), origin.most, 1.0});
  }
  return parameters;
}

}  // namespace

GemmTable load_gemm_table(const std::string& path) {
  const CsvTable table(path);
  if (table.rows() < kLeastTableRows) {
    throw InputError({.file = path,
                      .message = fmt::format("holds {} rows", table.rows()),
                      .allowed = fmt::format("at least {}", kLeastTableRows)});
  }
  GemmTable gemms{.path = path, .fitted = {}, .held = {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const TimedGemm gemm{.m = table.whole(row, "m", 1),
                         .n = table.whole(row, "n", 1),
                         .k = table.whole(row, "k", 1),
                         .time = microseconds(table.positive(row, "us_median"))};
    (row % kHeldOf == kHeldOf - 1 ? gemms.held : gemms.fitted).push_back(gemm);
  }
  return gemms;
}

TableError error_of(const std::vector<TimedGemm>& gemms, const Gpu& gpu) {
  const std::vector<Seconds> times = predicted(gemms, gpu);
  TableError e;
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    const double error = times[i] / gemms[i].time - 1;
    e.mean += std::abs(error);
    e.bias += error;
  }
  const double rows = std::max(1.0, static_cast<double>(gemms.size()));
  return {e.mean / rows, e.bias / rows};
}

TableFit fit_gemm_table(const GemmTable& table, const Gpu& gpu, int iterations,
                        const std::function<void(int)>& progress, Sharing* sharing) {
  ThreadSharing threads;
  Sharing& shared = sharing != nullptr ? *sharing : threads;
  const std::vector<TimedGemm>& rows = table.fitted;
  int evaluations = 0;
  const ResidualFn residuals = [&](const ConstantValues& constants) {
    const Gpu candidate = with_constants(gpu, constants);
    // Neighbouring rows are a part, so that all parts one after the other are the rows in order.
    const std::vector<double> logs = shared_residuals(shared, constants, [&](std::size_t part) {
      std::vector<double> of_part;
      const std::size_t end = (part + 1) * rows.size() / kFitParts;
      for (std::size_t i = part * rows.size() / kFitParts; i < end; ++i)
        of_part.push_back(std::log(predicted_time(rows[i], candidate) / rows[i].time));
      return of_part;
    });
    if (progress) progress(++evaluations);
    return logs;
  };
  TableFit result{.fit = fit_constants(told_parameters(table_parameters(gpu), residuals), residuals,
                                       {.iterations = iterations}),
                  .fitted_before = error_of(table.fitted, gpu),
                  .fitted_after = {},
                  .held_before = error_of(table.held, gpu),
                  .held_after = {}};
  const Gpu fitted = with_constants(gpu, result.fit.constants);
  result.fitted_after = error_of(table.fitted, fitted);
  result.held_after = error_of(table.held, fitted);
  return result;
}

}  // namespace fuseline
