// How much less time measured products take with more rows: the library takes other kernels then.
#pragma once

#include <string>

#include "base/csv.h"
#include "base/data_dir.h"

namespace fuseline {

struct MeasuredFall {
  double share = 0;  // of the time with fewer rows
  std::string text;
};

// The greatest of scenarios/measurements/h200-pytorch-wide/gemm.csv, in the times that power does
// not limit.
inline MeasuredFall greatest_measured_fall() {
  const CsvTable table((data_dir() / "measurements" / "h200-pytorch-wide" / "gemm.csv").string());
  const auto same = [&](std::size_t a, std::size_t b) {
    for (const char* column : {"n", "k", "bias", "layout"})
      if (table.text(a, column) != table.text(b, column)) return false;
    return true;
  };
  MeasuredFall greatest;
  for (std::size_t a = 0; a < table.rows(); ++a) {
    for (std::size_t b = 0; b < table.rows(); ++b) {
      if (table.whole(a, "m") >= table.whole(b, "m") || !same(a, b)) continue;
      const double share = 1 - table.positive(b, "us_short") / table.positive(a, "us_short");
      if (share <= greatest.share) continue;
      greatest = {share, "a product of " + table.text(b, "m") + " rows, " + table.text(b, "n") +
                             " columns and depth " + table.text(b, "k") + " takes " +
                             std::to_string(100 * share) + " % less time than one of " +
                             table.text(a, "m") + " rows"};
    }
  }
  return greatest;
}

}  // namespace fuseline
