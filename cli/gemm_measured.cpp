#include "cli/gemm_measured.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/csv.h"
#include "base/csv_text.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/table.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure_gemm.h"
#include "sim/selection/selection.h"

namespace fuseline {

namespace {

constexpr const char* kGemmHeader =
    "m,n,k,dtype,library,library_us,chosen,chosen_us,best,best_us,chosen_over_library,"
    "best_over_library,library_predicted_us,chosen_predicted_us,tiles,error,sm_mhz,power_w,device,"
    "driver,libraries,date\n";

struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype{};
  double library_us = 0, chosen_us = 0, best_us = 0;
  std::string chosen{}, best{};
};

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

std::vector<GemmRow> rows_of(const std::string& path) {
  std::vector<GemmRow> rows;
  const CsvTable table(path);
  for (std::size_t i = 0; i < table.rows(); ++i)
    rows.push_back({.m = table.whole(i, "m", 1),
                    .n = table.whole(i, "n", 1),
                    .k = table.whole(i, "k", 1),
                    .dtype = table.text(i, "dtype"),
                    .library_us = table.positive(i, "library_us"),
                    .chosen_us = table.positive(i, "chosen_us"),
                    .best_us = table.positive(i, "best_us"),
                    .chosen = table.text(i, "chosen"),
                    .best = table.text(i, "best")});
  return rows;
}

std::string line_of(const cuda::MeasuredGemm& r, const cuda::GemmMeasurer& measurer) {
  const auto us = [](Seconds time) { return to_us(time); };
  const auto over = [&](const cuda::MeasuredTile& t) { return r.library_time / t.time; };
  return fmt::format(
      "{},{},{},{},{},{:.3f},{},{:.3f},{},{:.3f},{:.4f},{:.4f},{:.3f},{:.3f},{},{:.2e},{},{},{},{},"
      "{},{:%Y-%m-%d}\n",
      r.gemm.m, r.gemm.n, r.gemm.k, name_of(r.gemm.dtype), csv_cell(r.library), us(r.library_time),
      csv_cell(r.chosen().name), us(r.chosen().time), csv_cell(r.best().name), us(r.best().time),
      over(r.chosen()), over(r.best()), us(r.library_predicted), us(r.chosen_predicted),
      r.tiles.size(), r.error,
      r.state.sm_clock_median ? fmt::format("{:.0f}", r.state.sm_clock_median->value() * 1e-6) : "",
      r.state.power_mean ? fmt::format("{:.0f}", r.state.power_mean->value()) : "",
      csv_cell(measurer.device()), csv_cell(measurer.driver()), csv_cell(measurer.libraries()),
      fmt::gmtime(std::time(nullptr)));
}

// Geometric mean and least of the library's time over ours.
std::string mean_line(const char* what, const std::vector<GemmRow>& rows, double GemmRow::*time) {
  double sum = 0, worst = 1e9;
  for (const GemmRow& r : rows) {
    const double ratio = r.library_us / (r.*time);
    sum += std::log(ratio);
    worst = std::min(worst, ratio);
  }
  return fmt::format(
      "{} of {} sizes: {:.3f} times the library's speed (geometric mean), worst "
      "{:.3f}\n",
      what, rows.size(), std::exp(sum / static_cast<double>(rows.size())), worst);
}

std::string measured_gemms_table(const std::vector<GemmRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  const auto two = [](double us) { return fmt::format("{:.2f}", us); };
  const auto ratio = [](double a, double b) { return fmt::format("{:.3f}", a / b); };
  for (const GemmRow& r : rows)
    cells.push_back({fmt::format("{} x {} x {}", r.m, r.n, r.k), two(r.library_us), r.chosen,
                     two(r.chosen_us), ratio(r.library_us, r.chosen_us), two(r.best_us),
                     ratio(r.library_us, r.best_us)});
  std::vector<GemmRow> even, odd;
  for (const GemmRow& r : rows)
    (r.m % 64 == 0 && r.n % 64 == 0 && r.k % 64 == 0 ? even : odd).push_back(r);
  std::string text = format_table({{"M x N x K", Align::left},
                                   {"library µs"},
                                   {"chosen tile", Align::left},
                                   {"µs"},
                                   {"ratio"},
                                   {"best µs"},
                                   {"ratio"}},
                                  cells);
  const auto lines = [&](const std::string& of, const std::vector<GemmRow>& some) {
    if (some.empty()) return;
    text += mean_line(("the chosen tile" + of).c_str(), some, &GemmRow::chosen_us);
    text += mean_line(("the best tile" + of).c_str(), some, &GemmRow::best_us);
  };
  lines("", rows);
  if (!even.empty() && !odd.empty()) {
    lines(", multiples of 64,", even);
    lines(", others,", odd);
  }
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
  if (!words.gpu) words.gpu = cuda::known_gpu(cuda::device_here()).name;
  const GemmRequest request = resolve_gemm(words);
  const std::vector<LibraryGemm> wanted = wanted_gemms(texts, request.gemm);
  for (const LibraryGemm& g : wanted) check_measurable(g);
  std::string text = kGemmHeader;
  std::vector<GemmRow> known;
  if (texts.output) {
    check_writable(*texts.output, "--output");
    if (kind_of_path(*texts.output) == PathKind::regular) {
      known = rows_of(*texts.output);
      text = read_input_file(*texts.output);
    }
  }
  const auto is_known = [&](const LibraryGemm& g) {
    return std::ranges::any_of(known, [&](const GemmRow& r) {
      return r.m == g.m && r.n == g.n && r.k == g.k && r.dtype == name_of(g.dtype);
    });
  };

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<std::string> wrong;
  int left = 0;
  std::vector<GemmRow> rows = known;
  run_long_work([&](const ShowProgress& show) {
    cuda::GemmMeasureOptions options;
    options.workers = {.threads = executor::available_threads(), .stop = InterruptGuard::flag()};
    cuda::GemmMeasurer measurer(request.gpu, options);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const LibraryGemm& g = wanted[i];
      if (is_known(g)) continue;
      if (std::chrono::duration<double>(Clock::now() - start).count() > 60 * minutes) {
        ++left;
        continue;
      }
      const std::string size = fmt::format("{} x {} x {}", g.m, g.n, g.k);
      show(size, static_cast<double>(i) / static_cast<double>(wanted.size()));
      const cuda::MeasuredGemm measured = measurer.measure(g);
      if (!measured.right()) {
        wrong.push_back(fmt::format("{}: relative error {:.2e}", size, measured.error));
        continue;
      }
      rows.push_back({.m = g.m,
                      .n = g.n,
                      .k = g.k,
                      .dtype = name_of(g.dtype),
                      .library_us = to_us(measured.library_time),
                      .chosen_us = to_us(measured.chosen().time),
                      .best_us = to_us(measured.best().time),
                      .chosen = measured.chosen().name,
                      .best = measured.best().name});
      text += line_of(measured, measurer);
      if (texts.output) write_file_atomically(*texts.output, text);
    }
    return true;
  });

  std::string messages;
  for (const std::string& w : wrong) messages += "fuseline: wrong result: " + w + "\n";
  if (left > 0)
    messages += fmt::format(
        "fuseline: {} of {} sizes are not measured yet: call again with the same --output\n", left,
        wanted.size());
  return {rows.empty() ? "" : measured_gemms_table(rows), std::move(messages),
          wrong.empty() ? ExitStatus::done : ExitStatus::check_failed};
}

}  // namespace fuseline
