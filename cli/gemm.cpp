// fuseline gemm: one library GEMM.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/predict_table.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/block/single_gemm.h"
#include "sim/report/json_output.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

std::int64_t required_dimension(const std::string& option, const std::optional<std::string>& text) {
  if (text) return parse_whole_number(option, *text, 1, kLargestDimension);
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .message = "is missing",
                    .allowed = fmt::format("a whole number from 1 to {}", kLargestDimension)});
}

std::string gemm_table(const LibraryGemm& g, const Gpu& gpu, const KernelEstimate& k) {
  const double rate = k.flops / FlopsPerSecond(1e12) / k.time;
  return fmt::format(
             "y[{}, {}] = x[{}, {}] w[{}, {}]^T{}, {}\n", grouped(g.m), grouped(g.n), grouped(g.m),
             grouped(g.k), grouped(g.n), grouped(g.k), g.bias ? " + b" : "",
             name_of(g.dtype) + (g.weights.quantised() ? ", weights " + g.weights.name() : "") +
                 (g.activations.quantised() ? ", activations " + g.activations.name() : "")) +
         describe(gpu) + "\n" + kernel_table({k}) +
         fmt::format("{:.1f} TFLOP/s; HBM bytes {} of the compulsory {} MB\n", rate,
                     times((k.hbm_read + k.hbm_write).as_double() / k.compulsory.as_double()),
                     megabytes(k.compulsory));
}

// Bands of products of few rows come from decode's.
constexpr std::int64_t kFewRows = 128;

Workload workload_of(const LibraryGemm& g) {
  Workload w{.phase = g.m < kFewRows ? Phase::decode : Phase::forward, .dtype = g.dtype};
  w.formats.weights = g.weights;
  w.formats.activations = g.activations;
  return w;
}

std::string band_line(const LibraryGemm& g, const Gpu& gpu, const KernelEstimate& k) {
  const Workload workload = workload_of(g);
  const Sureness sure(gpu, workload);
  return fmt::format("90 % band: time {}, HBM bytes {}\n", in_percent(sure.time(k, {})),
                     in_percent(sure.hbm(k, {})));
}

std::string gemm_csv(const LibraryGemm& g, const Gpu& gpu, const KernelEstimate& k) {
  return fmt::format(
      "m,n,k,dtype,bias,gpu,time_us,flops,hbm_read_bytes,hbm_write_bytes,l2_bytes,"
      "hbm_compulsory_bytes,bound,tile,split_k,weights,activations\n{},{},{},{},{},{},{:.3f},{},{},"
      "{},{},{},{},"
      "{},"
      "{},{},{}\n",
      g.m, g.n, g.k, name_of(g.dtype), g.bias ? 1 : 0, csv_cell(gpu.name), to_us(k.time),
      k.flops.value(), k.hbm_read.value(), k.hbm_write.value(), k.l2.value(), k.compulsory.value(),
      name_of(k.bound), fmt::join(k.tile, "x"), k.split_k,
      g.weights.quantised() ? g.weights.name() : name_of(g.dtype),
      g.activations.quantised() ? g.activations.name() : name_of(g.dtype));
}

// Codes are multiplied by codes of their own kind, and rows in groups are whole ones.
void check_activations(const LibraryGemm& gemm) {
  const StoredWeight& rows = gemm.activations;
  if (!rows.quantised()) return;
  const auto refuse = [&](const char* field, const std::string& value, const std::string& message,
                          const std::string& allowed) {
    throw InputError({.file = kCommandLine,
                      .field = field,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  };
  if (weights_for(rows) != gemm.weights.name())
    refuse("--activations", rows.name(), "is multiplied by weights in " + weights_for(rows),
           "--weights " + weights_for(rows));
  if (rows.scaled_within_rows() && gemm.k % rows.group != 0)
    refuse("--k", std::to_string(gemm.k),
           fmt::format("rows of x are no whole groups of {}", rows.group), "a multiple");
}

}  // namespace

CommandResult gemm_command(const Arguments& args) {
  std::optional<std::string> m, n, k, gpu, dtype, weights, activations, fidelity, format, operands,
      run;
  LibraryGemm gemm;
  Options options("gemm", "One GEMM y[m,n] = x[m,k] w[n,k]^T as the vendor's library runs it.",
                  {"fuseline gemm --m 2048 --n 12288 --k 4096 --gpu h200",
                   "fuseline gemm --m 16 --n 4096 --k 11008 --gpu h100 --format json"});
  options.text("--m", "M", "rows (tokens)", m);
  options.text("--n", "N", "columns (output features)", n);
  options.text("--k", "K", "contraction (input features)", k);
  options.text("--gpu", "NAME|FILE", "a shipped GPU or a TOML file", gpu);
  options.text("--dtype", "bf16|fp16|fp32", "storage type", dtype);
  options.text("--weights", "FORMAT[:GROUP]", "number format of w: int4:64, fp8, nvfp4, ...",
               weights);
  options.text("--activations", "FORMAT", "number format of x, beside --weights of its kind",
               activations);
  options.flag("--bias", "adds a bias in the epilogue", gemm.bias);
  options.text("--operands", "cold|rotating|hot",
               "L2 before it: nothing; x, and five w and y by turns (default); all", operands);
  options.text("--run", "benchmark|burst|sustained",
               "how long: as tables are timed, too short to throttle, for ever", run);
  options.text("--fidelity", "roofline|hierarchy", "how closely memory is simulated", fidelity);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  gemm.m = required_dimension("--m", m);
  gemm.n = required_dimension("--n", n);
  gemm.k = required_dimension("--k", k);
  gemm.dtype = parse_dtype(parse_word("--dtype", dtype.value_or("bf16"), {"bf16", "fp16", "fp32"}),
                           "--dtype");
  if (weights) gemm.weights = weights_option(*weights, gemm.dtype);
  if (gemm.weights.quantised() && gemm.k * size_of(gemm.weights.element()).bits() % 8 != 0)
    throw InputError(
        {.file = kCommandLine,
         .field = "--k",
         .value = std::to_string(gemm.k),
         .message = fmt::format("rows of w in {} do not fill whole bytes", gemm.weights.name()),
         .allowed = "an even number"});
  if (activations) gemm.activations = activations_option(*activations, gemm.dtype);
  check_activations(gemm);
  const auto place = [](const std::vector<std::string>& words, const std::string& word) {
    return std::ranges::find(words, word) - words.begin();
  };
  gemm.operands = static_cast<Operands>(place(
      operand_words(), parse_word("--operands", operands.value_or("rotating"), operand_words())));
  gemm.run = static_cast<Run>(
      place(run_words(), parse_word("--run", run.value_or("benchmark"), run_words())));
  const Fidelity level = parse_fidelity(fidelity.value_or("hierarchy"));
  const Gpu device = load_gpu_option(gpu);
  const KernelEstimate estimate = estimate_library_gemm(gemm, device, level);
  const bool has_band = level == Fidelity::hierarchy;
  if (chosen == "json") {
    return {has_band ? kernel_json(estimate, device, workload_of(gemm)) : kernel_json(estimate),
            {},
            ExitStatus::done};
  }
  if (chosen == "csv") return {gemm_csv(gemm, device, estimate), {}, ExitStatus::done};
  return {gemm_table(gemm, device, estimate) + (has_band ? band_line(gemm, device, estimate) : ""),
          {},
          ExitStatus::done};
}

}  // namespace fuseline
