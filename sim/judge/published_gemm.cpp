#include "sim/judge/published_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv.h"
#include "sim/block/single_gemm.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

std::vector<PublishedGemm> load_published_gemms(const std::string& path) {
  constexpr double kTera = 1e12;
  const CsvTable table(path);
  const std::vector<std::string> known = gpu_names();
  std::vector<PublishedGemm> gemms;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    PublishedGemm gemm;
    gemm.source = table.text(row, "source");
    gemm.citation = table.text(row, "citation");
    gemm.gpu = table.text(row, "gpu");
    if (std::find(known.begin(), known.end(), gemm.gpu) == known.end()) {
      table.fail(row, "gpu", "unknown gpu", fmt::format("{}", fmt::join(known, ", ")));
    }
    gemm.m = table.whole(row, "m", 1);
    gemm.n = table.whole(row, "n", 1);
    gemm.k = table.whole(row, "k", 1);
    gemm.rate = FlopsPerSecond(table.positive(row, "tflop_per_s") * kTera);
    gemm.caveat = table.text(row, "caveat");
    gemms.push_back(std::move(gemm));
  }
  return gemms;
}

JudgedGemm judge(const PublishedGemm& gemm) {
  const KernelEstimate e = estimate_library_gemm(
      {.m = gemm.m, .n = gemm.n, .k = gemm.k, .dtype = Dtype::bf16, .operands = Operands::hot},
      load_gpu(gemm.gpu), Fidelity::hierarchy);
  return {gemm, FlopsPerSecond(e.flops.as_double() / e.time.value())};
}

std::string published_table(const std::vector<JudgedGemm>& gemms) {
  std::string text = fmt::format("{:<24} {:>6} {:>6} {:>6} {:>10} {:>10} {:>8}\n", "gpu", "m", "n",
                                 "k", "published", "predicted", "error");
  struct Sum {
    double errors = 0;
    int rows = 0;
  };
  std::map<std::string, Sum> of_gpu;
  for (const JudgedGemm& g : gemms) {
    text +=
        fmt::format("{:<24} {:>6} {:>6} {:>6} {:>10.1f} {:>10.1f} {:>+6.1f} %\n", g.published.gpu,
                    g.published.m, g.published.n, g.published.k, g.published.rate.value() * 1e-12,
                    g.predicted.value() * 1e-12, 100 * g.error());
    of_gpu[g.published.gpu].errors += std::abs(g.error());
    ++of_gpu[g.published.gpu].rows;
  }
  text += "rates in TFLOP/s; error of the time, above 0 where the prediction is too slow\n";
  for (const auto& [gpu, sum] : of_gpu) {
    text += fmt::format("{}: mean error {:.1f} % over {} row{}\n", gpu, 100 * sum.errors / sum.rows,
                        sum.rows, sum.rows == 1 ? "" : "s");
  }
  return text;
}

}  // namespace fuseline
