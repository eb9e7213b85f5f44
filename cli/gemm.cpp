// fuseline gemm: one library GEMM.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/gemm_measured.h"
#include "cli/options.h"
#include "cli/predict_table.h"
#include "cli/table.h"
#include "sim/block/single_gemm.h"
#include "sim/selection/gemm_request.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

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

std::string band_line(const LibraryGemm& g, const Gpu& gpu, const KernelEstimate& k) {
  const Workload workload = bands_workload(g);
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

}  // namespace

CommandResult gemm_command(const Arguments& args) {
  GemmMeasureTexts texts;
  GemmWords& words = texts.words;
  bool measured = false;
  std::optional<std::string> format;
  Options options("gemm", "One GEMM y[m,n] = x[m,k] w[n,k]^T as the vendor's library runs it.",
                  {"fuseline gemm --m 2048 --n 12288 --k 4096 --gpu h200",
                   "fuseline gemm --m 16 --n 4096 --k 11008 --gpu h100 --format json",
                   "fuseline gemm --measure --shapes shapes.csv --output gemms.csv --minutes 8"});
  options.text("--m", "M", "rows (tokens)", words.m);
  options.text("--n", "N", "columns (output features)", words.n);
  options.text("--k", "K", "contraction (input features)", words.k);
  options.text("--gpu", "NAME|FILE", "a shipped GPU or a TOML file", words.gpu);
  options.text("--dtype", "bf16|fp16|fp32", "storage type", words.dtype);
  options.text("--weights", "FORMAT[:GROUP]", "number format of w: int4:64, fp8, nvfp4, ...",
               words.weights);
  options.text("--activations", "FORMAT", "number format of x, beside --weights of its kind",
               words.activations);
  options.flag("--bias", "adds a bias in the epilogue", words.bias);
  options.text("--operands", "cold|rotating|hot",
               "L2 before it: nothing; x and y, and five w by turns (default); all",
               words.operands);
  options.text("--run", "benchmark|burst|sustained",
               "how long: as tables are timed, too short to throttle, for ever", words.run);
  options.text("--fidelity", "roofline|hierarchy", "how closely memory is simulated",
               words.fidelity);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  options.flag("--measure", "on the GPU here: the library and every tile of ours, in turns",
               measured);
  options.text("--shapes", "FILE.csv", "many sizes to measure, in columns m, n and k",
               texts.shapes);
  options.text("--output", "FILE.csv", "of what was measured; what it has is not measured again",
               texts.output);
  options.text("--minutes", "N", "after which no further size is begun", texts.minutes);
  options.text("--variants", "NAME,...|all",
               "also the fastest tiles, changed; docs/measuring.md has the names", texts.variants);
  options.text("--tiles", "FILE.csv",
               "where to write the time of every tile of ours, new lines last", texts.tiles);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  if (measured) return measure_gemms(texts);
  for (const auto& [name, text] : {std::pair{"--shapes", &texts.shapes},
                                   {"--output", &texts.output},
                                   {"--minutes", &texts.minutes},
                                   {"--variants", &texts.variants},
                                   {"--tiles", &texts.tiles}})
    if (*text)
      throw InputError({.file = kCommandLine,
                        .field = name,
                        .value = **text,
                        .message = "is of what is measured",
                        .allowed = "--measure beside it"});
  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  const GemmRequest request = resolve_gemm(words);
  const LibraryGemm& gemm = request.gemm;
  const Gpu& device = request.gpu;
  const KernelEstimate estimate = estimate_library_gemm(gemm, device, request.fidelity);
  if (chosen == "json") return {gemm_json(request, estimate), {}, ExitStatus::done};
  if (chosen == "csv") return {gemm_csv(gemm, device, estimate), {}, ExitStatus::done};
  return {gemm_table(gemm, device, estimate) +
              (request.fidelity == Fidelity::hierarchy ? band_line(gemm, device, estimate) : ""),
          {},
          ExitStatus::done};
}

}  // namespace fuseline
