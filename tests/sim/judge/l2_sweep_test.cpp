// HBM bytes of library GEMMs against the size of the L2, measured beside predicted: the picture
// docs/pictures/l2-sweep.svg, which FUSELINE_UPDATE_DOCS=1 draws anew.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/data_dir.h"
#include "sim/block/single_gemm.h"
#include "sim/draw/line_chart.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/what_if.h"

namespace fuseline {
namespace {

// Above it the buffer no longer fits, so the counts are not those of the GEMM (README of the
// measurement).
constexpr std::int64_t kMostKept = 32'768'000;

struct Shape {
  std::int64_t m, n, k;
  auto operator<=>(const Shape&) const = default;
  [[nodiscard]] std::string text() const {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  }
};

struct Row {
  std::int64_t l2, left, sms;
  double read;  // bytes of one GEMM
};

std::map<Shape, std::vector<Row>> measured_rows() {
  const CsvTable csv((data_dir() / "measurements" / "h100-l2-kept" / "gemm_l2_kept.csv").string());
  std::map<Shape, std::vector<Row>> rows;
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    const Shape shape{csv.whole(i, "m"), csv.whole(i, "n"), csv.whole(i, "k")};
    const std::int64_t kept = csv.whole(i, "kept_bytes");
    if (shape.m == 0 || kept > kMostKept) continue;
    const std::int64_t l2 = csv.whole(i, "l2_bytes");
    rows[shape].push_back({l2, l2 - kept, csv.whole(i, "gemm_sms"),
                           static_cast<double>(csv.whole(i, "dram_read_bytes")) /
                               static_cast<double>(csv.whole(i, "gemms"))});
  }
  return rows;
}

double predicted_read(const Shape& shape, double of_l2, std::int64_t sms) {
  const Gpu whole = load_gpu("h100");
  const Gpu gpu = with_what_if(
      whole, {.l2_capacity = of_l2,
              .sm_count = static_cast<double>(sms) / static_cast<double>(whole.sm_count)});
  return estimate_library_gemm({.m = shape.m, .n = shape.n, .k = shape.k}, gpu)
      .hbm_read.as_double();
}

constexpr double kMega = 1e6;

// Counters show at most what the GEMM read, and that hardly grows while three fifths of the L2 go
// to other data. The bound is the largest growth measured, 16.8 %, at one size of one shape.
TEST(L2Sweep, MeasuredBytesHardlyGrowWithLessL2) {
  for (const auto& [shape, rows] : measured_rows()) {
    ASSERT_EQ(rows.size(), 6U) << shape.text();
    EXPECT_EQ(rows.front().left, rows.front().l2);
    for (const Row& row : rows) EXPECT_LT(row.read / rows.front().read, 1.17) << shape.text();
  }
}

// The prediction is more sensitive to the size than the hardware: with 19.7 MB instead of 52.4 it
// has up to 29 % more bytes, where 0.5 to 10 % were measured. The bound keeps that from growing.
TEST(L2Sweep, PredictedBytesGrowThreeTenthsAtMost) {
  for (const auto& [shape, rows] : measured_rows()) {
    const Row& least = rows.back();
    const double growth =
        predicted_read(shape, static_cast<double>(least.left) / static_cast<double>(least.l2),
                       least.sms) /
        predicted_read(shape, 1, least.sms);
    EXPECT_GE(growth, 0.97) << shape.text();
    EXPECT_LE(growth, 1.3) << shape.text();
  }
}

TEST(L2Sweep, PictureIsOfToday) {
  LineChart chart{.title = "HBM bytes read by a library GEMM, by the L2 that is left to it (H100)",
                  .x_name = "L2 left, MB",
                  .y_name = "MB read from HBM",
                  .lines = {}};
  const std::vector<Shape> shown = {
      {2048, 12288, 4096}, {8192, 4096, 4096}, {8192, 8192, 8192}, {4096, 16384, 16384}};
  const auto rows = measured_rows();
  for (const Shape& shape : shown) {
    ChartLine measured{shape.text() + " measured", {}}, predicted{shape.text() + " predicted", {}};
    const std::vector<Row>& of_shape = rows.at(shape);
    for (std::size_t i = of_shape.size(); i-- > 0;) {
      const Row& row = of_shape[i];
      const double x = static_cast<double>(row.left) / kMega;
      measured.points.push_back({x, row.read / kMega});
    }
    for (const double of_l2 : {0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0})
      predicted.points.push_back({of_l2 * static_cast<double>(of_shape.front().l2) / kMega,
                                  predicted_read(shape, of_l2, of_shape.front().sms) / kMega});
    chart.lines.push_back(measured);
    chart.lines.push_back(predicted);
  }
  const std::string today = draw(chart).file();
  const std::string path = std::string(FUSELINE_SOURCE_DIR) + "/docs/pictures/l2-sweep.svg";
  if (std::getenv("FUSELINE_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << today;
    return;
  }
  std::ifstream in(path);
  std::ostringstream kept;
  kept << in.rdbuf();
  EXPECT_EQ(kept.str(), today) << "draw it anew with FUSELINE_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace fuseline
