// Constants of library GEMMs from a table of times that others measured: fitted to two of every
// three rows, and checked on the third.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/sharing.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/fit.h"

namespace fuseline {

// y[m, n] = x[m, k] w[n, k]^T in bf16, as tables of serving frameworks time it: x and y stay, and
// copies of w take turns.
struct TimedGemm {
  std::int64_t m = 0, n = 0, k = 0;
  Seconds time;
};

struct GemmTable {
  std::string path;
  std::vector<TimedGemm> fitted, held;
};

// A CSV file with the columns m, n, k and us_median; others are not looked at. Every third row is
// held. InputError: as CsvTable; fewer than `kLeastTableRows` rows.
constexpr std::size_t kLeastTableRows = 30;
GemmTable load_gemm_table(const std::string& path);

// Of predicted over measured times, less 1.
struct TableError {
  double mean = 0;  // of the amounts
  double bias = 0;  // of the signed errors
};
TableError error_of(const std::vector<TimedGemm>& gemms, const Gpu& gpu);

struct TableFit {
  FitResult fit;
  TableError fitted_before, fitted_after, held_before, held_after;
};

// Starts from the GPU's constants, and fits those alone that the fitted rows tell something of.
// `progress`: evaluations of these rows so far. `sharing`: who predicts; null: the threads of this
// process.
TableFit fit_gemm_table(const GemmTable& table, const Gpu& gpu, int iterations,
                        const std::function<void(int)>& progress = {}, Sharing* sharing = nullptr);

}  // namespace fuseline
