// What `fuseline gemm --measure` writes: a table of products, or of variants of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/run/measure_gemm.h"

namespace fuseline {

// Which machine measured: the last columns of each line.
struct GemmMachine {
  std::string device, driver, libraries;
};

struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype{};
  double library_us = 0, chosen_us = 0, best_us = 0;
  std::string chosen{}, best{};
  std::string device{};
};

// A variant of a tile beside the same tile as it is shipped.
struct GemmVariantRow {
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype{}, tile{}, variant{};
  double us = 0, shipped_us = 0, library_us = 0;
  bool right = true;
  std::string device{};
};

std::string gemm_header();
std::string gemm_line(const cuda::MeasuredGemm& r, const GemmMachine& machine);
GemmRow gemm_row(const cuda::MeasuredGemm& r, const GemmMachine& machine);
// InputError: no such table.
std::vector<GemmRow> read_gemm_rows(const std::string& path);
// With the means of all, and of multiples of 64 and of others apart.
std::string measured_gemms_table(const std::vector<GemmRow>& rows);

// Every tile that ran, in the order of the menu. Those that are not final were looked at once.
std::string gemm_tiles_header();
std::string gemm_tiles_lines(const cuda::MeasuredGemm& r, const GemmMachine& machine);

std::string gemm_variant_header();
std::string gemm_variant_lines(const cuda::MeasuredGemm& r, const GemmMachine& machine);
std::vector<GemmVariantRow> gemm_variant_rows(const cuda::MeasuredGemm& r,
                                              const GemmMachine& machine);
std::vector<GemmVariantRow> read_gemm_variant_rows(const std::string& path);
// Variants whose result is wrong have no part in the means.
std::string measured_variants_table(const std::vector<GemmVariantRow>& rows);

// Of a table that is to go on. InputError: another GPU began it.
template <class Row>
void check_same_device(const std::vector<Row>& rows, const std::string& device,
                       const std::string& path);

}  // namespace fuseline
