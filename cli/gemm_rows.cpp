#include "cli/gemm_rows.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/csv.h"
#include "base/csv_text.h"
#include "base/error.h"
#include "cli/table.h"

namespace fuseline {

namespace {

std::string machine_cells(const GemmMachine& machine) {
  return fmt::format("{},{},{},{:%Y-%m-%d}", csv_cell(machine.device), csv_cell(machine.driver),
                     csv_cell(machine.libraries), fmt::gmtime(std::time(nullptr)));
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

// Of a variant: geometric mean, least and most of the shipped tile's time over its own.
struct VariantMean {
  double sum = 0, least = 1e9, most = 0;
  int count = 0;
};

}  // namespace

std::string gemm_header() {
  return "m,n,k,dtype,library,library_us,chosen,chosen_us,best,best_us,chosen_over_library,"
         "best_over_library,library_predicted_us,chosen_predicted_us,tiles,error,sm_mhz,power_w,"
         "device,"
         "driver,libraries,date\n";
}

std::string gemm_line(const cuda::MeasuredGemm& r, const GemmMachine& machine) {
  const auto us = [](Seconds time) { return to_us(time); };
  const auto over = [&](const cuda::MeasuredTile& t) { return r.library_time / t.time; };
  return fmt::format(
      "{},{},{},{},{},{:.3f},{},{:.3f},{},{:.3f},{:.4f},{:.4f},{:.3f},{:.3f},{},{:.2e},{},{},{}\n",
      r.gemm.m, r.gemm.n, r.gemm.k, name_of(r.gemm.dtype), csv_cell(r.library), us(r.library_time),
      csv_cell(r.chosen().name), us(r.chosen().time), csv_cell(r.best().name), us(r.best().time),
      over(r.chosen()), over(r.best()), us(r.library_predicted), us(r.chosen_predicted),
      r.tiles.size(), r.error,
      r.state.sm_clock_median ? fmt::format("{:.0f}", r.state.sm_clock_median->value() * 1e-6) : "",
      r.state.power_mean ? fmt::format("{:.0f}", r.state.power_mean->value()) : "",
      machine_cells(machine));
}

GemmRow gemm_row(const cuda::MeasuredGemm& r, const GemmMachine& machine) {
  return {.m = r.gemm.m,
          .n = r.gemm.n,
          .k = r.gemm.k,
          .dtype = name_of(r.gemm.dtype),
          .library_us = to_us(r.library_time),
          .chosen_us = to_us(r.chosen().time),
          .best_us = to_us(r.best().time),
          .chosen = r.chosen().name,
          .best = r.best().name,
          .device = machine.device};
}

std::vector<GemmRow> read_gemm_rows(const std::string& path) {
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
                    .best = table.text(i, "best"),
                    .device = table.text(i, "device")});
  return rows;
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

std::string gemm_tiles_header() {
  return "m,n,k,dtype,tile,us,predicted_us,final,library_us,device,driver,libraries,date\n";
}

std::string gemm_tiles_lines(const cuda::MeasuredGemm& r, const GemmMachine& machine) {
  std::string text;
  for (const cuda::MeasuredTile& t : r.tiles)
    text += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{},{:.3f},{}\n", r.gemm.m, r.gemm.n, r.gemm.k,
                        name_of(r.gemm.dtype), csv_cell(t.name), to_us(t.time), to_us(t.predicted),
                        t.final ? "yes" : "no", to_us(r.library_time), machine_cells(machine));
  return text;
}

std::string gemm_variant_header() {
  return "m,n,k,dtype,tile,variant,us,shipped_us,shipped_over_variant,library_us,error,right,"
         "device,"
         "driver,libraries,date\n";
}

std::string gemm_variant_lines(const cuda::MeasuredGemm& r, const GemmMachine& machine) {
  std::string text;
  for (const cuda::MeasuredVariant& v : r.variants)
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.4f},{:.3f},{:.2e},{},{}\n", r.gemm.m,
                        r.gemm.n, r.gemm.k, name_of(r.gemm.dtype), csv_cell(v.tile),
                        csv_cell(v.variant), to_us(v.time), to_us(v.shipped_time),
                        v.shipped_time / v.time, to_us(r.library_time), v.error,
                        r.right(v) ? "yes" : "no", machine_cells(machine));
  return text;
}

std::vector<GemmVariantRow> gemm_variant_rows(const cuda::MeasuredGemm& r,
                                              const GemmMachine& machine) {
  std::vector<GemmVariantRow> rows;
  for (const cuda::MeasuredVariant& v : r.variants)
    rows.push_back({.m = r.gemm.m,
                    .n = r.gemm.n,
                    .k = r.gemm.k,
                    .dtype = name_of(r.gemm.dtype),
                    .tile = v.tile,
                    .variant = v.variant,
                    .us = to_us(v.time),
                    .shipped_us = to_us(v.shipped_time),
                    .library_us = to_us(r.library_time),
                    .right = r.right(v),
                    .device = machine.device});
  return rows;
}

std::vector<GemmVariantRow> read_gemm_variant_rows(const std::string& path) {
  std::vector<GemmVariantRow> rows;
  const CsvTable table(path);
  for (std::size_t i = 0; i < table.rows(); ++i)
    rows.push_back({.m = table.whole(i, "m", 1),
                    .n = table.whole(i, "n", 1),
                    .k = table.whole(i, "k", 1),
                    .dtype = table.text(i, "dtype"),
                    .tile = table.text(i, "tile"),
                    .variant = table.text(i, "variant"),
                    .us = table.positive(i, "us"),
                    .shipped_us = table.positive(i, "shipped_us"),
                    .library_us = table.positive(i, "library_us"),
                    .right = table.text(i, "right") == "yes",
                    .device = table.text(i, "device")});
  return rows;
}

std::string measured_variants_table(const std::vector<GemmVariantRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  std::map<std::string, VariantMean> means;
  for (const GemmVariantRow& r : rows) {
    const double ratio = r.shipped_us / r.us;
    cells.push_back({fmt::format("{} x {} x {}", r.m, r.n, r.k), r.tile, r.variant,
                     fmt::format("{:.2f}", r.shipped_us), fmt::format("{:.2f}", r.us),
                     r.right ? fmt::format("{:.3f}", ratio) : "wrong result"});
    if (!r.right) continue;
    VariantMean& mean = means[r.variant];
    mean.sum += std::log(ratio);
    mean.least = std::min(mean.least, ratio);
    mean.most = std::max(mean.most, ratio);
    ++mean.count;
  }
  std::string text = format_table({{"M x N x K", Align::left},
                                   {"tile", Align::left},
                                   {"variant", Align::left},
                                   {"shipped µs"},
                                   {"µs"},
                                   {"speed"}},
                                  cells);
  for (const auto& [name, mean] : means)
    text += fmt::format(
        "{}: {:.3f} times the shipped tile's speed (geometric mean of {}), {:.3f} to {:.3f}\n",
        name, std::exp(mean.sum / mean.count), mean.count, mean.least, mean.most);
  return text;
}

template <class Row>
void check_same_device(const std::vector<Row>& rows, const std::string& device,
                       const std::string& path) {
  const auto other =
      std::ranges::find_if(rows, [&](const Row& row) { return row.device != device; });
  if (other != rows.end())
    throw InputError({.file = path,
                      .field = "device",
                      .value = other->device,
                      .message = "is another GPU than the one here: their times are no one table",
                      .allowed = device + ", or another --output"});
}
template void check_same_device(const std::vector<GemmRow>& rows, const std::string& device,
                                const std::string& path);
template void check_same_device(const std::vector<GemmVariantRow>& rows, const std::string& device,
                                const std::string& path);

}  // namespace fuseline
