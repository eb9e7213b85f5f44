#include "cli/gemm_measured.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "cli/gemm_rows.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure_gemm.h"
#include "sim/selection/selection.h"

namespace fuseline {

namespace {

std::vector<LibraryGemm> wanted_gemms(const GemmMeasureTexts& texts, const LibraryGemm& like) {
  if (!texts.shapes) return {like};
  const CsvTable table(*texts.shapes);
  std::vector<LibraryGemm> all;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    LibraryGemm g = like;
    for (const auto& [column, value] : {std::pair{"m", &g.m}, {"n", &g.n}, {"k", &g.k}})
      *value = table.whole(row, column, 1);
    all.push_back(g);
  }
  return all;
}

// The copy engine moves rows that begin at multiples of 16 bytes.
void check_measurable(const LibraryGemm& g) {
  const auto refuse = [](const char* field, const std::string& value, const char* message,
                         const char* allowed) {
    throw InputError({.file = kCommandLine,
                      .field = field,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  };
  if (g.dtype == Dtype::fp32)
    refuse("--dtype", "fp32", "has no kernels: tensor cores multiply 16-bit operands",
           "bf16 or fp16");
  if (g.weights.quantised() || g.bias)
    refuse("--measure", "", "takes plain products", "no --weights, --activations and --bias");
  if (g.n % 8 != 0 || g.k % 8 != 0)
    refuse(g.n % 8 != 0 ? "--n" : "--k", std::to_string(g.n % 8 != 0 ? g.n : g.k),
           "rows do not begin at multiples of 16 bytes", "a multiple of 8");
}

// What was measured, by this call and by those before it with the same --output.
struct GemmResults {
  std::string text{};  // of the output
  std::vector<GemmRow> rows{};
  std::vector<GemmVariantRow> variants{};
  bool of_variants = false;

  [[nodiscard]] bool has(const LibraryGemm& g) const {
    const auto same = [&](const auto& r) {
      return r.m == g.m && r.n == g.n && r.k == g.k && r.dtype == name_of(g.dtype);
    };
    return std::ranges::any_of(rows, same) || std::ranges::any_of(variants, same);
  }
  void add(const cuda::MeasuredGemm& measured, const GemmMachine& machine) {
    if (of_variants) {
      for (GemmVariantRow& row : gemm_variant_rows(measured, machine))
        variants.push_back(std::move(row));
      text += gemm_variant_lines(measured, machine);
    } else {
      rows.push_back(gemm_row(measured, machine));
      text += gemm_line(measured, machine);
    }
  }
  [[nodiscard]] std::string table() const {
    if (of_variants) return variants.empty() ? "" : measured_variants_table(variants);
    return rows.empty() ? "" : measured_gemms_table(rows);
  }
};

GemmResults known_results(const GemmMeasureTexts& texts) {
  GemmResults results{.of_variants = texts.variants.has_value()};
  results.text = results.of_variants ? gemm_variant_header() : gemm_header();
  if (!texts.output) return results;
  check_writable(*texts.output, "--output");
  if (kind_of_path(*texts.output) != PathKind::regular) return results;
  if (results.of_variants)
    results.variants = read_gemm_variant_rows(*texts.output);
  else
    results.rows = read_gemm_rows(*texts.output);
  results.text = read_input_file(*texts.output);
  return results;
}

// The lines that a table of tiles has already, or its first one.
std::string known_tiles(const std::string& path) {
  check_writable(path, "--tiles");
  if (kind_of_path(path) != PathKind::regular) return gemm_tiles_header();
  std::string text = read_input_file(path);
  if (!text.starts_with(gemm_tiles_header()))
    throw InputError({.file = path,
                      .field = "header",
                      .value = text.substr(0, text.find('\n')),
                      .message = "is no table of tiles, and nothing is added to it",
                      .allowed = gemm_tiles_header().substr(0, gemm_tiles_header().size() - 1)});
  return text;
}

}  // namespace

CommandResult measure_gemms(const GemmMeasureTexts& texts) {
  GemmWords words = texts.words;
  if (texts.shapes)
    for (std::optional<std::string>* size : {&words.m, &words.n, &words.k})
      if (!*size) *size = "8";  // of the list instead
  const double minutes =
      texts.minutes
          ? static_cast<double>(parse_whole_number("--minutes", *texts.minutes, 1, 10'000))
          : 1e9;
  cuda::GemmMeasureOptions options;
  if (texts.variants) options.variants = cuda::parse_gemm_variants("--variants", *texts.variants);
  // What is written is checked before a GPU is asked for. The sizes are the same on any of them.
  GemmWords on_any = words;
  if (!on_any.gpu) on_any.gpu = "h100";
  const std::vector<LibraryGemm> wanted = wanted_gemms(texts, resolve_gemm(on_any).gemm);
  for (const LibraryGemm& g : wanted) check_measurable(g);
  GemmResults results = known_results(texts);
  std::string tiles = texts.tiles ? known_tiles(*texts.tiles) : "";
  if (!words.gpu) words.gpu = cuda::known_gpu(cuda::device_here()).name;
  const GemmRequest request = resolve_gemm(words);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<std::string> wrong;
  int left = 0;
  run_long_work([&](const ShowProgress& show) {
    options.workers = {.threads = executor::available_threads(), .stop = InterruptGuard::flag()};
    cuda::GemmMeasurer measurer(request.gpu, options);
    const GemmMachine machine{measurer.device(), measurer.driver(), measurer.libraries()};
    check_same_device(results.rows, machine.device, texts.output.value_or(""));
    check_same_device(results.variants, machine.device, texts.output.value_or(""));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const LibraryGemm& g = wanted[i];
      if (results.has(g)) continue;
      if (std::chrono::duration<double>(Clock::now() - start).count() > 60 * minutes) {
        ++left;
        continue;
      }
      const std::string size = fmt::format("{} x {} x {}", g.m, g.n, g.k);
      show(size, static_cast<double>(i) / static_cast<double>(wanted.size()));
      const cuda::MeasuredGemm measured = measurer.measure(g);
      for (const cuda::MeasuredVariant& v : measured.variants)
        if (!measured.right(v))
          wrong.push_back(
              fmt::format("{}, {}, {}: relative error {:.2e}", size, v.tile, v.variant, v.error));
      if (!measured.right()) {
        wrong.push_back(fmt::format("{}: relative error {:.2e}", size, measured.error));
        continue;
      }
      results.add(measured, machine);
      if (texts.output) write_file_atomically(*texts.output, results.text);
      if (texts.tiles) {
        tiles += gemm_tiles_lines(measured, machine);
        write_file_atomically(*texts.tiles, tiles);
      }
    }
    return true;
  });

  std::string messages;
  for (const std::string& w : wrong) messages += "fuseline: wrong result: " + w + "\n";
  if (left > 0)
    messages += fmt::format(
        "fuseline: {} of {} sizes are not measured yet: call again with the same --output\n", left,
        wanted.size());
  return {results.table(), std::move(messages),
          wrong.empty() ? ExitStatus::done : ExitStatus::check_failed};
}

}  // namespace fuseline
